from serving.conftest import stage

__all__ = ["stage"]
