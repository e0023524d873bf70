//! How actors find each other: by name, so that a message reaches whoever was restarted under it.

use std::marker::PhantomData;

use ractor::{ActorRef, Message};

/// The name of an actor of one system. Cheap to clone; survives the actor.
#[derive(Debug)]
pub struct Door<M> {
    name: String,
    _message: PhantomData<fn(M)>,
}

impl<M> Clone for Door<M> {
    fn clone(&self) -> Self {
        Self { name: self.name.clone(), _message: PhantomData }
    }
}

impl<M: Message> Door<M> {
    /// Names an actor. Names are global to the process: begin them with the system's own.
    pub fn new(name: String) -> Self {
        Self { name, _message: PhantomData }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the actor that stands behind the door now.
    pub fn open(&self) -> Option<ActorRef<M>> {
        ActorRef::where_is(self.name.clone())
    }

    /// Sends a message; `false` when nobody is there. What must not be lost is asked for again from the durable state.
    pub fn send(&self, message: M) -> bool {
        self.open().is_some_and(|actor| actor.cast(message).is_ok())
    }
}
