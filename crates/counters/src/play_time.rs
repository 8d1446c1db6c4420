//! How long a recording or a film plays, read from its header.

/// Milliseconds of a WAV, MP3 or MP4 file. `None` when the bytes are no such file or do not say.
pub(crate) fn play_time_ms(data: &[u8]) -> Option<u64> {
    wav(data).or_else(|| mp4(data)).or_else(|| mp3(data))
}

/// A canonical WAV header states bytes per second.
fn wav(data: &[u8]) -> Option<u64> {
    let canonical = data.get(..4)? == b"RIFF" && data.get(8..16)? == b"WAVEfmt ";
    let rate = u32::from_le_bytes(data.get(28..32)?.try_into().ok()?);
    (canonical && rate > 0).then(|| as_u64(data.len()).saturating_mul(1_000).div_ceil(u64::from(rate)))
}

/// The movie header of an MP4 states duration and units per second. It stands in the box `moov`, which may come
/// behind the film.
fn mp4(data: &[u8]) -> Option<u64> {
    (data.get(4..8)? == b"ftyp").then_some(())?;
    let movie = inside(data, *b"moov")?;
    let header = inside(movie, *b"mvhd")?;
    let (scale, duration) = match header.first()? {
        0 => (be32(header, 12)?, u64::from(be32(header, 16)?)),
        1 => (be32(header, 20)?, be64(header, 24)?),
        _ => return None,
    };
    duration.checked_mul(1_000)?.checked_div(u64::from(scale))
}

/// What is inside the first box of this kind. Each step goes forward, so the walk ends.
fn inside(mut boxes: &[u8], kind: [u8; 4]) -> Option<&[u8]> {
    loop {
        let (stated, head) = match be32(boxes, 0)? {
            0 => (boxes.len(), 8),
            1 => (usize::try_from(be64(boxes, 8)?).ok()?, 16),
            size => (usize::try_from(size).ok()?, 8),
        };
        let size = stated.max(head);
        if boxes.get(4..8)? == kind {
            return boxes.get(head..size.min(boxes.len()));
        }
        boxes = boxes.get(size..)?;
    }
}

/// The first frame of an MP3 states the bit rate; a `Xing` or `Info` mark in it states the number of frames.
fn mp3(data: &[u8]) -> Option<u64> {
    /// Kilobits per second by index, for layer 3 of version 1 and of version 2.
    const RATES: [[u64; 16]; 2] = [
        [0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0],
        [0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0],
    ];
    const SAMPLES_A_SECOND: [u64; 3] = [44_100, 48_000, 32_000];
    let frames = behind_tag(data)?;
    let &[0xff, second, third, ..] = frames else { return None };
    // Layer 3 of version 1, 2 or 2.5.
    let (version, layer) = ((second >> 3) & 3, (second >> 1) & 3);
    (second & 0xe0 == 0xe0 && layer == 1 && version != 1).then_some(())?;
    let is_first = version == 3;
    let rate = RATES.get(usize::from(!is_first))?.get(usize::from(third >> 4)).copied()?;
    let halved = match version {
        3 => 0,
        2 => 1,
        _ => 2,
    };
    let samples = SAMPLES_A_SECOND.get(usize::from((third >> 2) & 3)).copied()? >> halved;
    // The mark stands behind the side information of the first frame.
    let head = frames.get(..frames.len().min(200)).unwrap_or_default();
    let marked = [b"Xing", b"Info"].iter().find_map(|&mark| head.windows(4).position(|four| four == mark));
    if let Some(at) = marked
        && be32(head, at + 4)? & 1 == 1
    {
        let count = u64::from(be32(head, at + 8)?);
        let samples_a_frame = if is_first { 1_152 } else { 576 };
        return count.checked_mul(samples_a_frame * 1_000)?.checked_div(samples);
    }
    // Kilobits a second are bits a millisecond.
    as_u64(frames.len()).checked_mul(8)?.checked_div(rate)
}

/// What follows an ID3 tag, if there is one: its length is in four bytes of seven bits.
fn behind_tag(data: &[u8]) -> Option<&[u8]> {
    if !data.starts_with(b"ID3") {
        return Some(data);
    }
    let length = data.get(6..10)?.iter().fold(0_usize, |sum, &byte| sum << 7 | usize::from(byte & 0x7f));
    data.get(10 + length..)
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

fn as_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mp4_box(kind: &[u8; 4], content: &[u8]) -> Vec<u8> {
        [&(content.len() as u32 + 8).to_be_bytes(), kind.as_slice(), content].concat()
    }

    #[test]
    fn films_state_their_length_wherever_it_stands() {
        let mut header = vec![0; 12];
        header.extend(90_000_u32.to_be_bytes());
        header.extend(902_400_u32.to_be_bytes());
        let movie = mp4_box(b"moov", &mp4_box(b"mvhd", &header));
        let film =
            [mp4_box(b"ftyp", b"mp42"), mp4_box(b"mdat", &[7; 999]), mp4_box(b"free", &[]), movie].concat();
        assert_eq!(play_time_ms(&film), Some(10_026));
        for len in 0..film.len() - 8 {
            assert_eq!(play_time_ms(&film[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn mp3_files_state_their_bit_rate_or_their_frames() {
        let frame = |rest: &[u8]| [&[0xff, 0xfb, 0x74, 0xc4], rest].concat();
        // 96 kbit/s.
        assert_eq!(play_time_ms(&frame(&[0; 11_996])), Some(1_000));
        let tagged = [b"ID3\x04\0\0\0\0\x01\x01".as_slice(), &[0; 129], &frame(&[0; 11_996])].concat();
        assert_eq!(play_time_ms(&tagged), Some(1_000));
        let marked = frame(&[&[0; 32], b"Info\0\0\0\x01\0\0\0\x64".as_slice(), &[0; 400]].concat());
        assert_eq!(play_time_ms(&marked), Some(2_400));
        for none in [&b""[..], b"ID3", b"\xff", b"\xff\xfb\xf4\xc4", b"\xff\xfd\x74\xc4", b"OggS"] {
            assert_eq!(play_time_ms(none), None, "{none:?}");
        }
    }

    #[test]
    fn wav_files_state_bytes_a_second() {
        let mut wav =
            b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x80\xbb\0\0\0\x77\x01\0\x02\0\x10\0data".to_vec();
        wav.resize(96_000 * 5, 0);
        assert_eq!(play_time_ms(&wav), Some(5_000));
    }
}
