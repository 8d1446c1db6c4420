//! How long a recording or a film plays, read from its header.

/// How many bytes a second of a recording or a film can take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rates {
    /// A second takes at least so much.
    pub(crate) lowest: u64,
    /// A second takes at most so much.
    pub(crate) highest: u64,
}

impl Rates {
    /// 4 kbit/s, below any codec for speech in files, to 50 Mbit/s, as for eight channels without compression.
    pub(crate) const SOUND: Self = Self { lowest: 500, highest: 6_250_000 };
    /// 16 kbit/s, for a still picture with speech, to 800 Mbit/s, as for studio masters.
    pub(crate) const FILM: Self = Self { lowest: 2_000, highest: 100_000_000 };
}

/// Milliseconds of a WAV, MP3 or MP4 file by its header, and no more or less than a file of its size can hold: a
/// header is text of a stranger. `None` when the bytes are no such file, or do not say: a duration of 0 (usual in
/// films that come in fragments) and one of all ones stand for one that is not known.
pub(crate) fn play_time_ms(data: &[u8], rates: Rates) -> Option<u64> {
    let stated = wav(data).or_else(|| mp4(data)).or_else(|| mp3(data))?;
    let milliseconds = |rate: u64| as_u64(data.len()).saturating_mul(1_000).checked_div(rate);
    Some(stated.max(milliseconds(rates.highest)?).min(milliseconds(rates.lowest)?))
}

/// The format chunk of a WAV states bytes per second. Other chunks may stand before it.
fn wav(data: &[u8]) -> Option<u64> {
    (data.get(..4)? == b"RIFF" && data.get(8..12)? == b"WAVE").then_some(())?;
    let mut chunks = data.get(12..)?;
    loop {
        let size = u32::from_le_bytes(chunks.get(4..8)?.try_into().ok()?);
        let content = chunks.get(8..)?;
        if chunks.starts_with(b"fmt ") {
            let rate = u32::from_le_bytes(content.get(8..12)?.try_into().ok()?);
            let milliseconds = as_u64(data.len()).saturating_mul(1_000);
            return (rate > 0).then(|| milliseconds.div_ceil(u64::from(rate)));
        }
        // A chunk of odd size is padded.
        chunks = content.get(usize::try_from(size).ok()?.checked_next_multiple_of(2)?..)?;
    }
}

/// The movie header of an MP4 states duration and units per second. It stands in the box `moov`, which may come
/// behind the film. A film in fragments may state its duration in a header of its own instead.
fn mp4(data: &[u8]) -> Option<u64> {
    (data.get(4..8)? == b"ftyp").then_some(())?;
    let movie = inside(data, *b"moov")?;
    let header = inside(movie, *b"mvhd")?;
    let (scale, stated) = match header.first()? {
        0 => (be32(header, 12)?, known32(header, 16)),
        1 => (be32(header, 20)?, known64(header, 24)),
        _ => return None,
    };
    let duration = stated.or_else(|| fragments(movie))?;
    let milliseconds = u128::from(duration).saturating_mul(1_000).checked_div(u128::from(scale))?;
    Some(u64::try_from(milliseconds).unwrap_or(u64::MAX))
}

/// The duration of all fragments together.
fn fragments(movie: &[u8]) -> Option<u64> {
    let header = inside(inside(movie, *b"mvex")?, *b"mehd")?;
    match header.first()? {
        0 => known32(header, 4),
        1 => known64(header, 4),
        _ => None,
    }
}

/// A figure that is neither 0 nor all ones.
fn known32(bytes: &[u8], at: usize) -> Option<u64> {
    be32(bytes, at).filter(|&figure| figure != 0 && figure != u32::MAX).map(u64::from)
}

/// A figure that is neither 0 nor all ones.
fn known64(bytes: &[u8], at: usize) -> Option<u64> {
    be64(bytes, at).filter(|&figure| figure != 0 && figure != u64::MAX)
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
        && let Some(count) = known32(head, at + 8)
    {
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

    fn play_time_ms(data: &[u8]) -> Option<u64> {
        super::play_time_ms(data, Rates { lowest: 1, highest: 10_000_000_000 })
    }

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

    /// A film whose movie header states this duration in units of a millisecond, and maybe one of its fragments.
    fn film(duration: u32, fragments: Option<u32>, bytes: usize) -> Vec<u8> {
        let header = [&[0; 12][..], &1_000_u32.to_be_bytes(), &duration.to_be_bytes(), &[0; 80]].concat();
        let fragments = fragments.map(|all| mp4_box(b"mehd", &[[0; 4], all.to_be_bytes()].concat()));
        let extends = fragments.map(|header| mp4_box(b"mvex", &header)).unwrap_or_default();
        let movie = mp4_box(b"moov", &[mp4_box(b"mvhd", &header), extends].concat());
        [mp4_box(b"ftyp", b"iso5"), movie, mp4_box(b"mdat", &vec![7; bytes])].concat()
    }

    #[test]
    fn a_duration_that_is_not_known_is_none() {
        for unknown in [0, u32::MAX] {
            assert_eq!(play_time_ms(&film(unknown, None, 900)), None);
            assert_eq!(play_time_ms(&film(unknown, Some(unknown), 900)), None);
            assert_eq!(play_time_ms(&film(unknown, Some(7_000), 9_000)), Some(7_000));
        }
        let long = [&[1_u8; 1][..], &[0; 19], &1_000_u32.to_be_bytes(), &[0xff; 8], &[0; 80]].concat();
        let long = mp4_box(b"moov", &mp4_box(b"mvhd", &long));
        assert_eq!(play_time_ms(&[mp4_box(b"ftyp", b"mp42"), long].concat()), None);
        for unknown in [[0; 4], [0xff; 4]] {
            let mark = [&[0xff, 0xfb, 0x74, 0xc4][..], &[0; 32], b"Info\0\0\0\x01", &unknown].concat();
            let mark = [mark, vec![0; 11_952]].concat();
            assert_eq!(play_time_ms(&mark), Some(1_000), "by its bit rate");
        }
    }

    #[test]
    fn no_file_plays_longer_or_shorter_than_its_size_can_hold() {
        let sound = |data: &[u8]| super::play_time_ms(data, Rates::SOUND);
        assert_eq!(sound(&film(1_000_000_000, None, 9_864)), Some(20_000));
        assert_eq!(sound(&film(1, None, 12_499_864)), Some(2_000));
        assert_eq!(sound(&film(60_000, None, 500_000)), Some(60_000));
        assert_eq!(super::play_time_ms(&film(1_000_000_000, None, 9_864), Rates::FILM), Some(5_000));
        // A clock of one tick a second and the longest time but one.
        let header = [&[1_u8; 1][..], &[0; 19], &1_u32.to_be_bytes(), &(u64::MAX - 1).to_be_bytes()].concat();
        let movie = mp4_box(b"moov", &mp4_box(b"mvhd", &header));
        let crafted = [mp4_box(b"ftyp", b"mp42"), movie].concat();
        assert_eq!(sound(&crafted), Some(2 * crafted.len() as u64));
        let mark = [&[0xff, 0xfb, 0x74, 0xc4][..], &[0; 32], b"Info\0\0\0\x01\xff\xff\xff\xfe"].concat();
        assert_eq!(sound(&mark), Some(2 * mark.len() as u64));
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
        // Another chunk before the format, of odd size.
        let (head, rest) = wav.split_at(12);
        let padded = [head, b"JUNK\x03\0\0\0\0\0\0\0", rest].concat();
        assert_eq!(play_time_ms(&padded), Some(5_001));
        let endless = [head, b"JUNK\xff\xff\xff\xff", rest].concat();
        assert_eq!(play_time_ms(&endless), None);
        wav[28..32].fill(0);
        assert_eq!(play_time_ms(&wav), None);
        wav[28] = 1;
        assert_eq!(super::play_time_ms(&wav, Rates::SOUND), Some(960_000));
    }
}
