//! Cost of a watched series: nanoseconds per sample, and bytes per subject.
//!
//! `cargo run --release -p watchglass-rules --example rule_cost [SERIES]`

use rules::{Engine, Machine, Tick};
use shared::alert::Rule;
use shared::catalog::{Catalog, VOCABULARY, gpu};
use shared::series::SeriesDef;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

/// Counts allocated bytes.
struct Counting;

static HELD_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded to the system allocator; only sizes are added up.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD_BYTES.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of the system allocator.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        HELD_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller upholds the contract of the system allocator.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const T: i64 = 1_790_000_000_000;

fn measure(when: &str, series: usize) {
    let catalog = Catalog::new(VOCABULARY.iter().copied().flatten().copied());
    let rule = Rule { id: "r".into(), name: "r".into(), when: when.into(), enabled: true, ..Rule::default() };
    let mut engine = Engine::new(T);
    assert!(engine.set_rules(&[rule], &catalog, T).is_empty(), "{when}");
    let metric = catalog.position(gpu::TEMP.tag).expect("the catalog has it");
    const EACH: usize = 100;
    let machines: Vec<String> = (0..series.div_ceil(EACH)).map(|i| format!("node-{i}")).collect();
    for name in &machines {
        engine.source(&Machine { id: name.clone(), name: name.clone(), interval_ms: 1000, ..Machine::default() });
        for i in 0..EACH as u32 {
            engine.define(name, i, &SeriesDef { metric, instance: i.to_string() }, &catalog);
        }
    }
    let values: Vec<Vec<f64>> =
        (0..8).map(|k| (0..EACH).map(|i| 60.0 + ((i * 31 + k * 17) % 200) as f64 / 10.0).collect()).collect();
    let before = HELD_BYTES.load(Ordering::Relaxed);
    let round = |engine: &mut Engine, t: i64| {
        for name in &machines {
            let values = &values[t as usize % values.len()];
            engine.tick(&Tick { source: name, t: T + t * 1000, now: T + t * 1000, clock_step: false, values });
        }
    };
    (1..=130).for_each(|t| round(&mut engine, t));
    let changes = engine.take().len();
    let bytes = (HELD_BYTES.load(Ordering::Relaxed) - before) as f64 / engine.subjects().max(1) as f64;
    const ROUNDS: i64 = 300;
    let begin = Instant::now();
    (131..131 + ROUNDS).for_each(|t| round(&mut engine, t));
    let nanos = begin.elapsed().as_nanos() as f64 / (ROUNDS as f64 * series as f64);
    let subjects = engine.subjects();
    #[allow(clippy::print_stdout, reason = "that is what it is for")]
    {
        println!("{when}: {subjects} subjects, {nanos:.1} ns a sample, {bytes:.0} bytes a subject, {changes} changes");
    }
}

fn main() {
    let series = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(10_000);
    measure("gpu.*.temp > 85 C for 2m, until < 82 C", series);
    measure("gpu.*.temp > 75 C for 2m, until < 70 C", series);
    measure("mean(gpu.*.temp, 1m) > 85 C for 2m", series);
    measure("max(gpu.*.temp, 1m) > 85 C for 2m", series);
    measure("gpu.*.temp reaches 100 C within 8h", series);
    measure("mean over source of gpu.*.temp > 85 C for 2m", series);
    measure("gpu.*.temp missing for 1m", series);
}
