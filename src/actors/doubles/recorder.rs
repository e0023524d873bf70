//! An actor that hears: it stands in for any actor and hands on its mail, and what becomes of its children.

use ractor::{Actor, ActorProcessingErr, ActorRef, Message, SupervisionEvent};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// What a recorder heard.
#[derive(Debug)]
pub(in crate::actors) enum Heard<M> {
    /// A message.
    Mail(M),
    /// A child panicked or failed.
    Failed(String),
    /// A child ended by itself.
    Ended,
}

/// The actor.
pub(in crate::actors) struct Recorder<M>(UnboundedSender<Heard<M>>);

/// Starts a recorder, under a name if others are to find it.
pub(in crate::actors) async fn recorder<M: Message + Sync>(
    name: Option<String>,
) -> (ActorRef<M>, UnboundedReceiver<Heard<M>>) {
    let (heard, words) = unbounded_channel();
    let (actor, _) = Actor::spawn(name, Recorder(heard), ()).await.expect("the name is free");
    (actor, words)
}

impl<M: Message + Sync> Actor for Recorder<M> {
    type Msg = M;
    type State = ();
    type Arguments = ();

    async fn pre_start(&self, _: ActorRef<M>, (): ()) -> Result<(), ActorProcessingErr> {
        Ok(())
    }

    async fn handle(&self, _: ActorRef<M>, mail: M, (): &mut ()) -> Result<(), ActorProcessingErr> {
        drop(self.0.send(Heard::Mail(mail)));
        Ok(())
    }

    async fn handle_supervisor_evt(
        &self,
        _: ActorRef<M>,
        event: SupervisionEvent,
        (): &mut (),
    ) -> Result<(), ActorProcessingErr> {
        match event {
            SupervisionEvent::ActorFailed(_, error) => drop(self.0.send(Heard::Failed(error.to_string()))),
            SupervisionEvent::ActorTerminated(..) => drop(self.0.send(Heard::Ended)),
            _ => {}
        }
        Ok(())
    }
}
