"""Files: rows are read from them, and embeddings are written to them."""
