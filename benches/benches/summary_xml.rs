//! The strict scanner against `roxmltree`, and on text made to hurt it.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use epitome_benches::{hostile_summaries, roxmltree_accepts, valid_summary};
use epitome_loop::SharedText;
use epitome_loopruntime::{parse_summary, parse_summary_text};

fn valid(criterion: &mut Criterion) {
    for (name, size) in [("summary of 2 KB", 2 << 10), ("summary of 64 KB", 64 << 10)] {
        let text = valid_summary(size);
        assert!(parse_summary(text.as_bytes()).is_ok() && roxmltree_accepts(&text));
        let mut group = criterion.benchmark_group(name);
        group.throughput(Throughput::Bytes(text.len() as u64));
        let shared = SharedText::from(text.as_str());
        group.bench_function("ours", |bencher| bencher.iter(|| parse_summary_text(shared.clone())));
        group.bench_function("ours, from bytes", |bencher| bencher.iter(|| parse_summary(text.as_bytes())));
        group.bench_function("roxmltree", |bencher| bencher.iter(|| roxmltree_accepts(&text)));
        group.finish();
    }
}

/// Ours alone: some of these take the rival many seconds.
fn hostile(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hostile summary of 1 MB");
    group.sample_size(20);
    for (name, text) in hostile_summaries() {
        assert!(parse_summary(text.as_bytes()).is_err());
        group.bench_function(name, |bencher| bencher.iter(|| parse_summary(text.as_bytes())));
    }
    group.finish();
}

criterion_group!(benches, valid, hostile);
criterion_main!(benches);
