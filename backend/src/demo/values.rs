//! Values that the simulated job logs: a loss that falls, and a speed.

use super::drive::Drive;
use super::job::Phase;
use super::machine::Machine;
use collectors::Out;
use shared::catalog::job::{LOSS, STEP, TOKENS_PER_SECOND, ValueSender};

/// Loss at the start of a run, the loss that it approaches, and the time constant of its fall in milliseconds.
const FIRST_LOSS: f64 = 9.2;
const LAST_LOSS: f64 = 1.9;
const LOSS_FALL_MS: f64 = 2_400_000.0;
/// Tokens per second of a rank.
const SPEED: f64 = 12_400.0;
/// Duration of a training step, milliseconds.
const STEP_MS: i64 = 500;

impl Machine {
    /// Writes the values that the ranks of this machine log at an instant. Only the first rack logs: its machines are
    /// those on which people look at a run.
    pub(super) fn log(&self, drive: &Drive, out: &mut Out) {
        let (rack, node, _) = self.place();
        if rack != 0 || drive.phase != Phase::Train || drive.hung {
            return;
        }
        let fallen = (LAST_LOSS - FIRST_LOSS) * (1.0 - (-(drive.age as f64) / LOSS_FALL_MS).exp());
        for gpu in 0..self.gpus() {
            let noise = self.values_key().derive(u64::from(gpu)).jitter(drive.t, 1_000);
            let rank = ValueSender {
                run: Some(self.run_id(drive.run)),
                rank: Some(node * self.gpus() + gpu),
                ..ValueSender::default()
            };
            let instance = rank.instance(None);
            let rounded = |value: f64, digits: f64| (value * digits).round() / digits;
            out.put(&LOSS, instance.as_str(), rounded((FIRST_LOSS + fallen) * (1.0 + 0.02 * noise), 1e4));
            let speed = SPEED * drive.share * (1.0 - drive.dip) * (1.0 + 0.01 * noise);
            out.put(&TOKENS_PER_SECOND, instance.as_str(), rounded(speed, 1.0));
            out.put(&STEP, instance.as_str(), (drive.age / STEP_MS) as f64);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{fleet, training};
    use super::*;
    use std::time::Duration;

    fn logged(machine: &Machine, t: i64) -> Vec<(String, f64)> {
        let mut out = Out::default();
        out.begin(Duration::ZERO);
        machine.read(t, &mut out);
        out.present().into_iter().filter(|(tag, _)| tag.starts_with(shared::catalog::job::PREFIX)).collect()
    }

    #[test]
    fn each_rank_of_the_first_rack_logs_a_loss_that_falls() {
        let machine = Machine::new(&fleet(2, 9, None, 1), 1, 0);
        let t = training(&machine, 120_000);
        let now = logged(&machine, t);
        assert_eq!(now.len(), 6, "loss, speed and step of two ranks: {now:?}");
        let run = machine.run_id(machine.job().number(t));
        let loss = |all: &[(String, f64)]| {
            let sender = ValueSender { run: Some(run.clone()), rank: Some(2), ..ValueSender::default() };
            let tag = LOSS.tag_of(&sender.instance(None));
            all.iter().find(|(known, _)| *known == tag).map(|(_, value)| *value).expect("a loss")
        };
        let begin = machine.run_begin(t);
        let early = (0..).map(|n| logged(&machine, begin + n * 1_000)).find(|all| !all.is_empty()).expect("it trains");
        assert!(loss(&early) > 8.0 && loss(&now) > LAST_LOSS * 0.9, "{early:?} {now:?}");
        assert_eq!(logged(&Machine::new(&fleet(2, 9, None, 1), 8, 0), t), [], "the second rack");
        let alone = Machine::new(&fleet(2, 1, None, 1), 0, 0);
        assert_eq!(logged(&alone, training(&alone, 120_000)).len(), 6, "a machine alone has a run, too");
    }
}
