//! Pure: what policy says of a request.
