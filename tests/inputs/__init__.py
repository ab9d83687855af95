"""What tests read as if people had written it: a trace and manifests of our own making, in the forms that real ones have.

Real ones (`real.py`) are no part of the repository. Where they lie beside the checkout, the same tests take them as a further parameter.
"""
