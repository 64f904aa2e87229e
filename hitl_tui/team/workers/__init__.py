"""Workers: processes that advance threads of a store on a server, as many as one likes."""
