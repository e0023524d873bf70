//! The mailboxes of the actors.
