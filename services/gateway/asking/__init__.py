"""What other services are asked, and logs that are followed."""
