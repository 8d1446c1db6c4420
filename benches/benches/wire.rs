//! The wire against serde_json on the same values or bytes.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use epitome_benches::{InputShape, wire_input};
use epitome_sessionruntime::{decode_input, encode_input, encoded_len, fit_input};

fn wire(criterion: &mut Criterion) {
    for (name, bytes) in [("wire of 1 MB", 1_000_000), ("wire of 10 MB", 10_000_000)] {
        // Without optimization this is only a test that it runs.
        let bytes = if cfg!(debug_assertions) { bytes / 100 } else { bytes };
        let input = wire_input(bytes);
        let shape = InputShape::from(&input);
        let wire = encode_input(&input);
        let limit = wire.len() as u64 * 8 / 10;
        assert_eq!(decode_input(&wire).as_ref(), Ok(&input));
        let mut group = criterion.benchmark_group(name);
        group.sample_size(20).throughput(Throughput::Bytes(wire.len() as u64));
        group.bench_function("encode", |bencher| bencher.iter(|| encode_input(&input)));
        group.bench_function("encode, serde_json", |bencher| bencher.iter(|| shape.to_vec()));
        group.bench_function("exact length", |bencher| bencher.iter(|| encoded_len(&input)));
        group.bench_function("exact length, counting sink", |bencher| bencher.iter(|| shape.counted()));
        group.bench_function("decode", |bencher| bencher.iter(|| decode_input(&wire)));
        group.bench_function("decode, serde_json", |bencher| bencher.iter(|| InputShape::read(&wire)));
        group.bench_function("fit to 80 %", |bencher| bencher.iter(|| fit_input(&input, limit)));
        group.finish();
    }
}

criterion_group!(benches, wire);
criterion_main!(benches);
