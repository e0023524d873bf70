//! Pure: what one job does next.
