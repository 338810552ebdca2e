//! The table of results that the bench prints.

/// A row of the table.
struct BenchRow {
    what: String,
    figure: String,
    goal: &'static str,
    peer: String,
    met: Option<bool>,
    on: String,
}

/// Rows in the order in which they were measured.
#[derive(Default)]
pub struct Table(Vec<BenchRow>);

impl Table {
    /// Adds a figure in `unit`. Its goal is met when it is at most `most`.
    #[allow(clippy::too_many_arguments, reason = "one for each column of the table")]
    pub fn at_most(
        &mut self,
        what: &str,
        figure: f64,
        unit: &str,
        most: f64,
        goal: &'static str,
        peer: &str,
        on: &str,
    ) {
        self.0.push(BenchRow {
            what: what.into(),
            figure: format!("{} {unit}", shared::unit::number(figure)),
            goal,
            peer: peer.into(),
            met: Some(figure <= most),
            on: on.into(),
        });
        let row = self.0.last().expect("pushed above");
        eprintln!("  {}: {}", row.what, row.figure);
    }

    /// Adds a figure that could not be measured, with the reason.
    pub fn missing(&mut self, what: &str, goal: &'static str, why: &str) {
        self.0.push(BenchRow {
            what: what.into(),
            figure: "not measured".into(),
            goal,
            peer: String::new(),
            met: None,
            on: why.into(),
        });
    }

    /// Prints all rows.
    #[allow(clippy::print_stdout, reason = "the table is what the command is for")]
    pub fn print(&self) {
        let width = |f: fn(&BenchRow) -> &str| self.0.iter().map(|r| f(r).chars().count()).max().unwrap_or(0);
        let (a, b) = (width(|r| &r.what), width(|r| &r.figure));
        let (c, d) = (width(|r| r.goal), width(|r| &r.peer));
        println!("\n  {:a$}  {:>b$}  {:c$}  {:d$}  measured on", "figure", "ours", "goal", "peer");
        for row in &self.0 {
            let mark = match row.met {
                Some(true) => "●",
                Some(false) => "▲",
                None => "◌",
            };
            println!("{mark} {:a$}  {:>b$}  {:c$}  {:d$}  {}", row.what, row.figure, row.goal, row.peer, row.on);
        }
    }
}
