//! Block references read per second from JSON lines in memory, plain and packed.
//!
//! `cargo bench --bench ingest`

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kvreplay_core::ingest::{ReadOptions, Source, read};
use kvreplay_core::progress::Progress;
use std::fmt::Write as _;
use std::io::{Cursor, Write as _};

/// Sessions that grow turn by turn, as Mooncake writes them: about `blocks` ids a row.
fn trace(rows: u64, blocks: u64) -> (String, u64) {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut sessions: Vec<Vec<u64>> = vec![Vec::new(); (rows / 8 + 1) as usize];
    let (mut text, mut references, mut fresh) = (String::new(), 0, 1_000_000_u64);
    for row in 0..rows {
        let at = next(sessions.len() as u64) as usize;
        let path = &mut sessions[at];
        path.pop(); // the partial tail
        let more = 1 + next(blocks / 2);
        path.extend(fresh..fresh + more);
        fresh += more;
        references += path.len() as u64;
        let input = path.len() as u64 * 512 - next(512);
        let ids: Vec<String> = path.iter().map(u64::to_string).collect();
        let ids = ids.join(", ");
        let _ = writeln!(
            text,
            "{{\"timestamp\": {}, \"input_length\": {input}, \"output_length\": 100, \"hash_ids\": [{ids}]}}",
            row * 40
        );
    }
    (text, references)
}

fn bench(c: &mut Criterion) {
    let mut group = c.benchmark_group("ingest");
    group.sample_size(10);
    for blocks in [40, 350] {
        let (text, references) = trace(800_000 / blocks, blocks);
        group.throughput(Throughput::Elements(references));
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        gzip.write_all(text.as_bytes()).expect("memory");
        let zst = zstd::encode_all(text.as_bytes(), 3).expect("memory");
        let packed = [("plain", text.into_bytes()), ("gz", gzip.finish().expect("memory")), ("zst", zst)];
        for (name, bytes) in &packed {
            group.bench_function(format!("{name}_{blocks}"), |b| {
                b.iter(|| {
                    let source = Source::reader("bench", Box::new(Cursor::new(bytes.clone())), None);
                    read(vec![source], &ReadOptions::default(), &Progress::default()).expect("a valid trace")
                });
            });
        }
    }
    group.finish();
}

criterion_group!(benches, bench);
criterion_main!(benches);
