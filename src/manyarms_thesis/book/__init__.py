"""The book of results: docs/reproduction.md, made from the stored results by `python -m manyarms_thesis.book`."""
