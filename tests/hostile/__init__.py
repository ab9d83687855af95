"""What a tenant, a network or a bad day may do to an operator, and a healthy tenant beside it. `attacks.py` has the table."""
