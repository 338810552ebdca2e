//! Requests between the hubs of a cluster.

use super::presence::LinkProcess;
use super::{Ingest, NoAnswer};
use shared::agent::Question;
use shared::wire::SourceId;
use std::pin::Pin;

/// Reason why a link may not begin here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTake {
    /// Another process has it on another hub, and answers there.
    InUse(LinkProcess),
    /// The new holder cannot be written to the database.
    Unavailable(String),
}

/// The answer to a request, later.
pub type AskedElsewhere<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The other hubs of a cluster.
pub trait OtherHubs: Send + Sync {
    /// The agent of a source has connected here: this hub takes over its link, unless another process has it elsewhere.
    fn take<'a>(&'a self, source: &'a str, process: &'a LinkProcess) -> AskedElsewhere<'a, Result<(), NoTake>>;

    /// Forwards a question for an agent to the hub that holds its source: the answer, and the correction to add to its
    /// timestamps, milliseconds.
    fn ask(&self, source: SourceId, what: Question) -> AskedElsewhere<'_, Result<(Vec<u8>, i64), NoAnswer>>;
}

impl Ingest {
    /// A link of this process has started on another hub: the one here ends, unless another process has it and answers.
    ///
    /// # Errors
    /// That process.
    pub async fn yields(&self, source: &str, process: &LinkProcess) -> Result<(), LinkProcess> {
        self.0.presence.yields(source, process).await
    }

    /// The sources with a linked agent.
    pub fn linked(&self) -> Vec<String> {
        self.0.presence.agents()
    }

    /// Whether the agent of a source is linked.
    pub fn is_linked(&self, source: &str) -> bool {
        self.0.presence.has_agent(source)
    }

    /// Ends the link of an agent whose source another hub holds now.
    pub fn leave(&self, source: &str) {
        self.0.presence.leave(source);
    }

    /// Forwards a question of another hub to the agent of a source that is linked here. Returns the answer, and the
    /// correction to add to its timestamps, milliseconds.
    ///
    /// # Errors
    /// [`NoAnswer`], after 10 s at the latest.
    pub async fn ask_agent(&self, source: SourceId, what: Question) -> Result<(Vec<u8>, i64), NoAnswer> {
        let answer = self.0.desk.ask(source, what).await?;
        Ok((answer.bytes.to_vec(), answer.shift))
    }
}
