"""What a deployment is: the schema, the loader, and errors with file, line and key."""
