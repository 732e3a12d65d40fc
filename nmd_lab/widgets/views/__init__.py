"""Views of the explorers: which parts a page has, and what the actions of the user do."""
