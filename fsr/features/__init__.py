"""What holds a kernel back: access features, resources, prediction."""
