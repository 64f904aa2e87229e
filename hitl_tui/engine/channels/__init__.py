"""The state: values, channels with their reducers and schemas, and from updates to changes."""
