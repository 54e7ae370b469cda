"""Who there is, what they are known by, what they may, and the places where they file things."""
