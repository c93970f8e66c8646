"""What row-sparse arrays need: merge, take, scatter, retain, add."""
