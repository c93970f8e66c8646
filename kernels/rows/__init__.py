"""What row-sparse arrays need: merge, take."""
