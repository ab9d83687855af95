"""Kopf handlers: thin, each a few lines that call a room."""
