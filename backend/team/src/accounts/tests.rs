//! A hub's people and machines, first from an attacker's view.

mod machines;
mod people;
mod principal_cache;
mod teams;
mod views;

use super::*;
use shared::enrol::EnrolRequest;
use shared::people::NewPerson;
use shared::secret::Secret;
use shared::session::{Setup, SignIn};
use std::time::Duration;
use stream::clock::Manual;

/// A good password of a person.
const PASSWORD: &str = "kiwi lamp under rain";

/// A hub with a clock that stands still.
struct Hub {
    accounts: Accounts,
    clock: Arc<Manual>,
    _folder: tempfile::TempDir,
}

impl Hub {
    async fn new() -> Hub {
        let folder = tempfile::tempdir().expect("a folder");
        let clock = Arc::new(Manual::at(1_800_000_000_000, Duration::from_secs(1)));
        let accounts = Accounts::open(folder.path(), clock.clone()).await.expect("a fresh database");
        Hub { accounts, clock, _folder: folder }
    }

    /// A hub with its first admin `mara`, who is signed in.
    async fn with_admin() -> (Hub, Begun) {
        let hub = Hub::new().await;
        let code = hub.accounts.setup_code().await.expect("answered").expect("no account yet");
        let setup = Setup { code, name: "mara".into(), password: Secret::new(PASSWORD) };
        let begun = hub.accounts.setup(&setup, &network(1)).await.expect("the first admin");
        (hub, begun)
    }

    /// Adds a person with the usual password.
    async fn add(&self, name: &str, role: Role, hub_admin: bool) {
        let person = NewPerson {
            name: name.into(),
            password: Some(Secret::new(PASSWORD)),
            hub_admin,
            role: Some(role),
            team: None,
        };
        self.accounts.add_person(&Principal::local(0), &person).await.expect("added");
    }

    /// The id of a machine that joined by a join key of a team.
    async fn machine(&self, team: &str, host: &str) -> String {
        let local = Principal::local(0);
        let join = self.accounts.new_join(&local, team, &Default::default()).await.expect("a join key");
        let request = format!("{:0>32}", hex::encode(host.as_bytes()));
        let request = EnrolRequest { request, host: host.into(), ..EnrolRequest::default() };
        match self.accounts.enrol(join.key.reveal(), &request, &network(9)).await.expect("it joins") {
            Enrolment::Enrolled(enrolled) => enrolled.source,
            Enrolment::Pending => panic!("nobody has to confirm it"),
        }
    }

    async fn sign_in(&self, name: &str, password: &str) -> Result<Begun, Denied> {
        let wanted = SignIn { name: name.into(), password: Secret::new(password) };
        self.accounts.sign_in(&wanted, &network(1), None).await
    }

    fn pass(&self, time: Duration) {
        self.clock.pass(time);
    }

    /// Actions and results of the audit log, newest first.
    async fn log(&self) -> Vec<String> {
        let rows = self
            .accounts
            .audit_log(&Principal::local(0), &LogFilter { limit: Some(1_000), ..LogFilter::default() })
            .await
            .expect("the log");
        rows.entries.iter().map(|row| format!("{} {} {} {}", row.who, row.action, row.object, row.result)).collect()
    }
}

impl Accounts {
    /// The present scope of a principal.
    async fn scope(&self, by: &Principal) -> Result<Scope, Denied> {
        Ok(self.judge_again(by).await?.map_or_else(Scope::nothing, |principal| principal.scope()))
    }
}

fn network(last: u8) -> Network {
    Network::from_address([10, 0, 0, last].into())
}

fn secret(text: &str) -> Secret {
    Secret::new(text)
}

const fn minutes(minutes: u64) -> Duration {
    Duration::from_secs(60 * minutes)
}
