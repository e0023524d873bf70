//! The agent adapter: pi in RPC mode.
