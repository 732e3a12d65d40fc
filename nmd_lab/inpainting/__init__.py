"""Missing pixels of pictures, by a mixture of Gaussians of their patches."""
