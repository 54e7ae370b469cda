"""TensorBoard files of trials (core API spec, section 11)."""
