"""What can be learned of a body's text before it is translated."""
