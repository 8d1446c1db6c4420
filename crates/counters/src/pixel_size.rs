//! How large a picture is, read from its header.

/// Width and height in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PixelSize {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
}

impl PixelSize {
    /// Reads the size from the header of a PNG, JPEG, GIF or WebP file. `None` when the bytes are no such
    /// file, are cut short, or state a size of zero or above 65 535 a side (no provider takes more).
    #[must_use]
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let size = png(bytes).or_else(|| gif(bytes)).or_else(|| webp(bytes)).or_else(|| jpeg(bytes))?;
        let plausible = 1..=u32::from(u16::MAX);
        (plausible.contains(&size.width) && plausible.contains(&size.height)).then_some(size)
    }
}

fn png(bytes: &[u8]) -> Option<PixelSize> {
    let header = bytes.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    (header.get(4..8)? == b"IHDR").then_some(())?;
    Some(PixelSize { width: be32(header, 8)?, height: be32(header, 12)? })
}

fn gif(bytes: &[u8]) -> Option<PixelSize> {
    (bytes.starts_with(b"GIF87a") || bytes.starts_with(b"GIF89a")).then_some(())?;
    Some(PixelSize { width: le16(bytes, 6)?, height: le16(bytes, 8)? })
}

fn webp(bytes: &[u8]) -> Option<PixelSize> {
    (bytes.get(..4)? == b"RIFF" && bytes.get(8..12)? == b"WEBP").then_some(())?;
    match bytes.get(12..16)? {
        // Lossy: a key frame's start code, then fourteen bits each.
        b"VP8 " => (bytes.get(23..26)? == b"\x9d\x01\x2a").then_some(())?,
        b"VP8L" => return webp_lossless(bytes),
        // Extended: the canvas less one, twenty-four bits each.
        b"VP8X" => return Some(PixelSize { width: le24(bytes, 24)? + 1, height: le24(bytes, 27)? + 1 }),
        _ => return None,
    }
    Some(PixelSize { width: le16(bytes, 26)? & 0x3fff, height: le16(bytes, 28)? & 0x3fff })
}

fn webp_lossless(bytes: &[u8]) -> Option<PixelSize> {
    (*bytes.get(20)? == 0x2f).then_some(())?;
    let bits = le16(bytes, 21)? | (le16(bytes, 23)? << 16);
    Some(PixelSize { width: (bits & 0x3fff) + 1, height: ((bits >> 14) & 0x3fff) + 1 })
}

/// Walks the segments up to the first frame header.
fn jpeg(bytes: &[u8]) -> Option<PixelSize> {
    let mut rest = bytes.strip_prefix(b"\xff\xd8")?;
    loop {
        let marker = match rest {
            [0xff, 0xff, ..] => {
                rest = rest.get(1..)?;
                continue;
            }
            [0xff, marker, ..] => *marker,
            _ => return None,
        };
        let segment = rest.get(2..)?;
        match marker {
            // Frame headers; 0xc4, 0xc8 and 0xcc in their middle are tables.
            0xc0..=0xc3 | 0xc5..=0xc7 | 0xc9..=0xcb | 0xcd..=0xcf => {
                return Some(PixelSize { width: be16(segment, 5)?, height: be16(segment, 3)? });
            }
            // Markers without a segment.
            0x01 | 0xd0..=0xd7 => rest = segment,
            // The picture starts, or ends, without a frame header.
            0xd9 | 0xda => return None,
            _ => rest = segment.get(usize::try_from(be16(segment, 0)?).ok()?.max(2)..)?,
        }
    }
}

fn be16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_be_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn le16(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from(u16::from_le_bytes(bytes.get(at..at + 2)?.try_into().ok()?)))
}

fn le24(bytes: &[u8], at: usize) -> Option<u32> {
    Some(le16(bytes, at)? | (u32::from(*bytes.get(at + 2)?) << 16))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn png_header(width: u32, height: u32) -> Vec<u8> {
        [b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR".as_slice(), &width.to_be_bytes(), &height.to_be_bytes()].concat()
    }

    fn read(bytes: &[u8]) -> Option<(u32, u32)> {
        PixelSize::read(bytes).map(|size| (size.width, size.height))
    }

    #[test]
    fn reads_each_format() {
        assert_eq!(read(&png_header(1200, 800)), Some((1200, 800)));
        assert_eq!(read(b"GIF89a\x20\x03\x58\x02\0\0\0"), Some((800, 600)));
        let jpeg = b"\xff\xd8\xff\xe0\0\x04ab\xff\xff\xc4\0\x02\xff\xc2\0\x0b\x08\x02\x58\x03\x20\x03";
        assert_eq!(read(jpeg), Some((800, 600)));
        let lossy = b"RIFF\0\0\0\0WEBPVP8 \0\0\0\0abc\x9d\x01\x2a\x20\x03\x58\x42";
        assert_eq!(read(lossy), Some((800, 600)));
        let lossless = b"RIFF\0\0\0\0WEBPVP8L\0\0\0\0\x2f\x1f\xc3\x95\0";
        assert_eq!(read(lossless), Some((800, 600)));
        let extended = b"RIFF\0\0\0\0WEBPVP8X\0\0\0\0\0\0\0\0\x1f\x03\0\x57\x02\0";
        assert_eq!(read(extended), Some((800, 600)));
    }

    #[test]
    fn refuses_what_is_cut_or_implausible() {
        let whole = png_header(10, 10);
        for len in 0..whole.len() {
            assert_eq!(read(&whole[..len]), None, "{len} bytes");
        }
        assert_eq!(read(&png_header(0, 10)), None);
        assert_eq!(read(&png_header(u32::MAX, 10)), None);
        assert_eq!(read(b"\xff\xd8\xff\xda\0\x02"), None);
        assert_eq!(read(&[b"\xff\xd8".as_slice(), &[0xff; 100]].concat()), None);
    }
}
