//! What other hubs of a cluster are asked, and ask.

use super::presence::LinkProcess;
use super::{Ingest, NoAnswer};
use shared::agent::Question;
use shared::wire::SourceId;
use std::pin::Pin;

/// Why a link may not begin here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoTake {
    /// Another process has it on another hub, and answers there.
    InUse(LinkProcess),
    /// It cannot be written down that it is here now.
    Unavailable(String),
}

/// What comes of a question, later.
pub type AskedElsewhere<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// The other hubs of a cluster.
pub trait OtherHubs: Send + Sync {
    /// The agent of a source has come here: its link is this hub's from now on, unless another process has it elsewhere.
    fn take<'a>(&'a self, source: &'a str, process: &'a LinkProcess) -> AskedElsewhere<'a, Result<(), NoTake>>;

    /// Asks the hub that holds a source what its agent says: the answer, and what is to be added to its stamps,
    /// milliseconds.
    fn ask(&self, source: SourceId, what: Question) -> AskedElsewhere<'_, Result<(Vec<u8>, i64), NoAnswer>>;
}

impl Ingest {
    /// A link of this process has come to another hub: the one here ends, unless another process has it and answers.
    ///
    /// # Errors
    /// That process.
    pub async fn yields(&self, source: &str, process: &LinkProcess) -> Result<(), LinkProcess> {
        self.0.presence.yields(source, process).await
    }

    /// The sources that agents are linked of.
    pub fn linked(&self) -> Vec<String> {
        self.0.presence.agents()
    }

    /// Whether the agent of a source is linked.
    pub fn is_linked(&self, source: &str) -> bool {
        self.0.presence.has_agent(source)
    }

    /// Ends the link of an agent whose source another hub has now.
    pub fn leave(&self, source: &str) {
        self.0.presence.leave(source);
    }

    /// What the agent of a source that is linked here says, for another hub: the answer, and what is to be added to its stamps,
    /// milliseconds.
    ///
    /// # Errors
    /// [`NoAnswer`], after 10 s at the latest.
    pub async fn ask_agent(&self, source: SourceId, what: Question) -> Result<(Vec<u8>, i64), NoAnswer> {
        let answer = self.0.desk.ask(source, what).await?;
        Ok((answer.bytes.to_vec(), answer.shift))
    }
}
