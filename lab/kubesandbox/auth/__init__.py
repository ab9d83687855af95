"""Authentication of a request's user, and authorization of the request."""
