//! The scripted model: a loopback server that pi talks to.
