"""Predicted ratings beside other libraries and published figures: the tables of docs/ratings.md."""
