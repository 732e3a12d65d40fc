"""Parts of the page of an explorer, as numbers and texts that the front end draws."""
