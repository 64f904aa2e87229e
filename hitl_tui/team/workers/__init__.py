"""Workers: processes that advance threads of a store on a database server, any number of them."""
