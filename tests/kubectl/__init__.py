"""The sandbox as a user of kubectl meets it."""
