"""Operations on rows of row-sparse arrays: merge, take, scatter, retain, add."""
