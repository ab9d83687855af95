"""One profile's plugins put to work on columns: built, guarded, called at their extension points, their answers kept."""
