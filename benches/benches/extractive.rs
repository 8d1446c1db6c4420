//! The summarizer without a model.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use epitome_benches::summary_request;
use epitome_summarizers::Extractive;

fn extractive(criterion: &mut Criterion) {
    for (name, bytes) in
        [("extractive summary of 1 MB", 1_000_000), ("extractive summary of 10 MB", 10_000_000)]
    {
        // Without optimization this is only a test that it runs.
        let bytes = if cfg!(debug_assertions) { bytes / 100 } else { bytes };
        let request = summary_request(bytes);
        let mut group = criterion.benchmark_group(name);
        group.sample_size(10).throughput(Throughput::Bytes(bytes as u64));
        group.bench_function("ours", |bencher| bencher.iter(|| Extractive::new().summarize_now(&request)));
        group.finish();
    }
}

criterion_group!(benches, extractive);
criterion_main!(benches);
