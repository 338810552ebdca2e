//! `watchglass doctor --hub URL`: tests the connection to a hub step by step, up to a failure. Only a key is sent.

use super::hello::{self, NO_KEY, UplinkEnd};
use super::identity::AgentFile;
use super::road::{Road, Stage, Trail};
use super::settings::UplinkSettings;
use crate::settings::{HubEntry, ProxyEnvironment};
use shared::agent::HubMessage;
use std::path::Path;
use std::time::Duration;
use tokio::time::timeout;

/// Maximum time for a hub to refuse the key.
const GOODBYE_TIMEOUT: Duration = Duration::from_secs(2);
/// Maximum offset of the clock before it is a fault, seconds.
const MOST_SKEW: i64 = 5;

/// A step of the connection to a hub.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The step.
    pub stage: Stage,
    /// The result or the error; both are texts for users.
    pub found: Result<String, String>,
}

/// Connects to a hub, and returns the result of each step; the last one may have failed.
async fn walk(proxies: &ProxyEnvironment, hub: &HubEntry, file: &AgentFile) -> Vec<Step> {
    let failed = |stage, why: String| Step { stage, found: Err(why) };
    let road = match Road::new(hub, proxies) {
        Ok(road) => road,
        Err(why) => return vec![failed(Stage::Tls, why)],
    };
    let known = file.known(&hub.url().to_string());
    let key = known.as_ref().map_or("none", |known| known.key.as_str());
    let mut trail = Trail::new();
    let opened = hello::upgrade(&road, road.url(0), key, &mut trail).await;
    let mut steps: Vec<Step> = trail.into_iter().map(|(stage, found)| Step { stage, found: Ok(found) }).collect();
    let clock = steps.iter().position(|step| step.stage == Stage::Clock).map(|at| steps.remove(at));
    match opened {
        Ok(mut socket) => {
            // A revoked key is refused after the upgrade; with a valid one the hub sends nothing, because we send
            // nothing.
            let end = timeout(GOODBYE_TIMEOUT, hello::next(&mut socket)).await;
            let end = end.map(|said| {
                said.map(|message| match message {
                    HubMessage::Goodbye { code, reason, wait } => Some(hello::goodbye(code, reason, wait)),
                    _ => None,
                })
            });
            steps.push(match end {
                Ok(
                    Ok(Some(UplinkEnd::Refused(_, why)) | Some(UplinkEnd::Later(why, _)))
                    | Err(UplinkEnd::Refused(_, why)),
                ) => failed(Stage::Key, why),
                _ => Step {
                    stage: Stage::Key,
                    found: Ok(format!("known as {}", known.map_or(String::new(), |known| known.name))),
                },
            });
        }
        Err(UplinkEnd::Refused(NO_KEY, why)) => {
            steps.push(Step { stage: Stage::Upgrade, found: Ok("a hub responds".into()) });
            steps.push(match (known, &hub.key) {
                (Some(_), _) => failed(Stage::Key, why),
                (None, Some(_)) => {
                    Step { stage: Stage::Key, found: Ok("this machine joins when its agent starts".into()) }
                }
                (None, None) => {
                    failed(Stage::Key, "this machine has no key of that hub; start its agent with a join line".into())
                }
            });
        }
        Err(UplinkEnd::Refused(_, why) | UplinkEnd::Later(why, _)) => steps.push(failed(Stage::Upgrade, why)),
        Err(UplinkEnd::Lost(end)) => steps.push(failed(end.stage, end.why)),
        Err(UplinkEnd::Stopped) => {}
    }
    let reached = steps.iter().any(|step| step.stage == Stage::Key);
    steps.extend(clock.filter(|_| reached).map(judged));
    steps
}

/// The steps to all hubs, each with the address of the hub; `folder` is the data folder.
///
/// # Errors
/// `agent.json` cannot be read, or the system cannot start a runtime: a sentence.
pub fn walk_all(settings: &UplinkSettings, folder: Option<&Path>) -> Result<Vec<(String, Vec<Step>)>, String> {
    if settings.hubs.is_empty() {
        return Ok(Vec::new());
    }
    let file = AgentFile::open(folder, 1)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    let walks = settings.hubs.iter().map(|hub| {
        let steps = runtime.block_on(walk(&settings.proxies, hub, &file));
        (hub.url().to_string(), steps)
    });
    Ok(walks.collect())
}

/// Text form of the steps: one line each.
pub fn report(hub: &str, steps: &[Step]) -> String {
    let mut text = format!("\nHub {hub}\n");
    for step in steps {
        let (mark, found) = match &step.found {
            Ok(found) => ("●", found),
            Err(why) => ("■", why),
        };
        text += &format!("  {mark} {:7}  {found}\n", step.stage.text());
    }
    text
}

/// JSON form of the steps.
pub fn json(hub: &str, steps: &[Step]) -> serde_json::Value {
    let steps = steps.iter().map(|step| match &step.found {
        Ok(found) => serde_json::json!({ "step": step.stage.text(), "ok": true, "found": found }),
        Err(why) => serde_json::json!({ "step": step.stage.text(), "ok": false, "reason": why }),
    });
    serde_json::json!({ "hub": hub, "steps": steps.collect::<Vec<_>>() })
}

/// Marks the clock's step as a fault if the clocks are far apart.
fn judged(step: Step) -> Step {
    let Ok(text) = &step.found else { return step };
    let skew: i64 = text.parse().unwrap_or(0);
    let found = match skew.abs() {
        0..=MOST_SKEW => Ok("the same as the hub's".into()),
        _ => Err(format!(
            "this machine's clock is {} s {} the hub's; correct the wrong one",
            skew.abs(),
            if skew > 0 { "ahead of" } else { "behind" }
        )),
    };
    Step { stage: Stage::Clock, found }
}
