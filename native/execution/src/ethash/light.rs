//! Light ethash: epoch cache, hash of a nonce, nonce search.
//!
//! The light algorithm derives each dataset item from the cache (16 MB in epoch 0), so verification needs no dataset.
//! Deriving an item is a chain of 256 dependent random reads, so memory latency is the limit. Several items are
//! therefore derived at the same time: both items of a page in verification, the items of several nonces in a search.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use alloy_primitives::{B256, U256, keccak256};
use ophion_primitives::errors::{Error, Result};

use super::keccak512::{has_bmi, keccak512};

const EPOCH_LENGTH: u64 = 30_000;
/// Number of supported epochs (blocks below 61,440,000), as many as the published size tables have. Without a limit, a
/// forged header could request any amount of memory.
const EPOCHS: u64 = 2048;

const CACHE_BYTES_START: u64 = 1 << 24;
const CACHE_BYTES_GROWTH: u64 = 1 << 17;
const DATASET_BYTES_START: u64 = 1 << 30;
const DATASET_BYTES_GROWTH: u64 = 1 << 23;
const ROW_BYTES: u64 = 64;
const PAGE_BYTES: u64 = 128;
const CACHE_ROUNDS: usize = 3;
const PARENTS: u32 = 256;
const ACCESSES: u32 = 64;
/// Number of nonces that a thread hashes at the same time. More nonces would exceed the line fill buffers of the
/// processor.
const ABREAST: usize = 4;
const MAX_THREADS: usize = 256;
/// Maximum number of cached epochs. Two caches are in use around an epoch change.
const MAX_CACHED_EPOCHS: usize = 2;

/// 64 bytes of the ethash cache or dataset, as little-endian words: a cache entry or half a dataset page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(align(64))]
struct Row([u32; 16]);

impl Row {
    #[inline(always)]
    fn hash(&self) -> Row {
        keccak512((0..8).map(|lane| u64::from(self.0[2 * lane]) | u64::from(self.0[2 * lane + 1]) << 32)).into()
    }
}

impl From<[u64; 8]> for Row {
    #[inline(always)]
    fn from(lanes: [u64; 8]) -> Row {
        Row(std::array::from_fn(|word| (lanes[word / 2] >> (word % 2 * 32)) as u32))
    }
}

/// Return the seed hash of an epoch: 32 zero bytes, hashed once for each earlier epoch.
pub fn seed(epoch: u64) -> Result<B256> {
    check_epoch(epoch)?;
    Ok(seed_of(epoch))
}

fn seed_of(epoch: u64) -> B256 {
    (0..epoch).fold(B256::ZERO, |seed, _| keccak256(seed))
}

fn check_epoch(epoch: u64) -> Result<()> {
    if epoch < EPOCHS {
        return Ok(());
    }
    Err(Error::Decode(format!("ethash: epoch {epoch} is beyond the last supported one, {}", EPOCHS - 1)))
}

/// Return the largest size in bytes below `start + growth * epoch` that is a prime number of units.
fn size(start: u64, growth: u64, unit: u64, epoch: u64) -> u64 {
    let mut count = (start + growth * epoch) / unit - 1;
    while !is_prime(count) {
        count -= 2;
    }
    count * unit
}

fn is_prime(odd: u64) -> bool {
    (3..).step_by(2).take_while(|divisor| divisor * divisor <= odd).all(|divisor| !odd.is_multiple_of(divisor))
}

/// Prefetch a cache row. Hashing other rows meanwhile hides the memory latency.
fn prefetch(row: &Row) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch hint on a valid reference only affects speed.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(row).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

/// Cache and dataset size of one epoch.
pub struct Cache {
    rows: Vec<Row>,
    pages: u32,
}

impl Cache {
    /// Generate the cache of an epoch. Runs on one thread, because each row depends on the previous row.
    fn generate(epoch: u64) -> Self {
        let count = (size(CACHE_BYTES_START, CACHE_BYTES_GROWTH, ROW_BYTES, epoch) / ROW_BYTES) as usize;
        let pages = (size(DATASET_BYTES_START, DATASET_BYTES_GROWTH, PAGE_BYTES, epoch) / PAGE_BYTES) as u32;
        let mut rows = Vec::with_capacity(count);
        let mut row = hashed(seed_of(epoch).as_slice());
        rows.push(row);
        for _ in 1..count {
            row = row.hash();
            rows.push(row);
        }
        for _ in 0..CACHE_ROUNDS {
            for index in 0..count {
                let before = &rows[if index == 0 { count } else { index } - 1];
                let other = &rows[rows[index].0[0] as usize % count];
                if let Some(ahead) = rows.get(index + 2) {
                    prefetch(&rows[ahead.0[0] as usize % count]);
                }
                let mixed = Row(std::array::from_fn(|word| before.0[word] ^ other.0[word]));
                rows[index] = mixed.hash();
            }
        }
        Cache { rows, pages }
    }

    /// Derive the two dataset items of each page from the cache. The reads for all items are interleaved.
    #[inline(always)]
    fn derive<const N: usize>(&self, pages: [u32; N]) -> [[Row; 2]; N] {
        let count = self.rows.len() as u32;
        let item = |at: usize, half: usize| pages[at].wrapping_mul(2) + half as u32;
        let mut mixes: [[Row; 2]; N] = std::array::from_fn(|at| {
            std::array::from_fn(|half| {
                let mut row = self.rows[(item(at, half) % count) as usize];
                row.0[0] ^= item(at, half);
                row.hash()
            })
        });
        for parent in 0..PARENTS {
            for (at, mix) in mixes.iter_mut().enumerate() {
                for (half, row) in mix.iter_mut().enumerate() {
                    let pick = fnv(item(at, half) ^ parent, row.0[parent as usize % 16]) % count;
                    let other = &self.rows[pick as usize];
                    for word in 0..16 {
                        row.0[word] = fnv(row.0[word], other.0[word]);
                    }
                }
            }
        }
        mixes.map(|mix| mix.map(|row| row.hash()))
    }

    #[inline(always)]
    fn works<const N: usize>(&self, seal_hash: &B256, nonces: [u64; N]) -> [Work; N] {
        let heads = nonces.map(|nonce| {
            let mut input = [0u8; 40];
            input[..32].copy_from_slice(seal_hash.as_slice());
            input[32..].copy_from_slice(&nonce.to_le_bytes());
            hashed(&input)
        });
        let mut mixes = heads.map(|head| [head, head]);
        for access in 0..ACCESSES {
            let word = access as usize % 32;
            let picks: [u32; N] =
                std::array::from_fn(|at| fnv(access ^ heads[at].0[0], mixes[at][word / 16].0[word % 16]) % self.pages);
            let derived = self.derive(picks);
            for at in 0..N {
                for half in 0..2 {
                    for word in 0..16 {
                        mixes[at][half].0[word] = fnv(mixes[at][half].0[word], derived[at][half].0[word]);
                    }
                }
            }
        }
        std::array::from_fn(|at| Work::conclude(&heads[at], &mixes[at]))
    }

    /// Hash several nonces over one seal hash.
    fn compute<const N: usize>(&self, seal_hash: &B256, nonces: [u64; N]) -> [Work; N] {
        #[cfg(target_arch = "x86_64")]
        {
            #[target_feature(enable = "avx2,bmi1,bmi2")]
            fn wide<const N: usize>(cache: &Cache, seal_hash: &B256, nonces: [u64; N]) -> [Work; N] {
                cache.works(seal_hash, nonces)
            }
            if has_bmi() && is_x86_feature_detected!("avx2") {
                // SAFETY: the processor features were detected above.
                return unsafe { wide(self, seal_hash, nonces) };
            }
        }
        self.works(seal_hash, nonces)
    }
}

/// Ethash result of one nonce.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Work {
    pub mix: B256,
    /// Result of the ethash function. A block is valid if its result, as a number, does not exceed 2^256 / difficulty.
    pub result: B256,
}

impl Work {
    fn conclude(head: &Row, mix: &[Row; 2]) -> Self {
        let mut input = [0u8; 96];
        put_words(&head.0, &mut input[..64]);
        let folded: [u32; 8] = std::array::from_fn(|at| {
            let four = &mix[at / 4].0[at % 4 * 4..][..4];
            fnv(fnv(fnv(four[0], four[1]), four[2]), four[3])
        });
        put_words(&folded, &mut input[64..]);
        Work { mix: B256::from_slice(&input[64..]), result: keccak256(input) }
    }

    pub fn reaches(&self, difficulty: U256) -> bool {
        // With difficulty 1, every result is valid; the target 2^256 would not fit into 256 bits.
        difficulty == U256::ONE || (!difficulty.is_zero() && U256::from_be_bytes(self.result.0) <= target(difficulty))
    }
}

/// Return floor(2^256 / difficulty), for difficulties above 1.
fn target(difficulty: U256) -> U256 {
    // 2^256 does not fit into 256 bits, so divide 2^256 - 1. The quotient is the same, unless the difficulty divides
    // 2^256.
    let quotient = U256::MAX / difficulty;
    if U256::MAX % difficulty == difficulty - U256::ONE { quotient + U256::ONE } else { quotient }
}

/// Hash at most 64 bytes, a multiple of eight, into a cache row.
fn hashed(bytes: &[u8]) -> Row {
    let lanes = bytes.chunks_exact(8).map(|lane| u64::from_le_bytes(lane.try_into().expect("eight bytes")));
    Row::from(keccak512(lanes))
}

#[inline(always)]
fn fnv(left: u32, right: u32) -> u32 {
    left.wrapping_mul(0x0100_0193) ^ right
}

fn put_words(words: &[u32], out: &mut [u8]) {
    for (word, bytes) in words.iter().zip(out.chunks_exact_mut(4)) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
}

// --- caches and search --------------------------------------------------------------------------

type Slot = Arc<LazyLock<Cache, Box<dyn FnOnce() -> Cache + Send>>>;

/// Return the cache of a block's epoch. The first caller generates the cache; other callers wait.
fn cache(number: u64) -> Result<Slot> {
    static CACHES: Mutex<Vec<(u64, Slot)>> = Mutex::new(Vec::new());
    let epoch = number / EPOCH_LENGTH;
    check_epoch(epoch)?;
    let mut kept = CACHES.lock().unwrap_or_else(PoisonError::into_inner);
    let entry = match kept.iter().position(|(known, _)| *known == epoch) {
        Some(at) => kept.remove(at),
        None => (epoch, Slot::new(LazyLock::new(Box::new(move || Cache::generate(epoch))))),
    };
    kept.insert(0, entry.clone());
    kept.truncate(MAX_CACHED_EPOCHS);
    Ok(entry.1)
}

/// Hash one nonce for the block of this number.
pub fn compute(seal_hash: &B256, nonce: u64, number: u64) -> Result<Work> {
    let [work] = cache(number)?.compute(seal_hash, [nonce]);
    Ok(work)
}

/// Search up to `attempts` nonces from `start_nonce` on, wrapping around, on `threads` threads. Returns a valid nonce
/// and its mix hash; None if no nonce is valid.
pub fn search(
    seal_hash: &B256,
    number: u64,
    difficulty: U256,
    start_nonce: u64,
    attempts: u64,
    threads: usize,
) -> Result<Option<(u64, B256)>> {
    let cache = cache(number)?;
    let cache: &Cache = &cache;
    let next = AtomicU64::new(0);
    let found = OnceLock::new();
    let seek = || {
        while found.get().is_none() {
            let offset = next.fetch_add(ABREAST as u64, Ordering::Relaxed);
            if offset >= attempts {
                return;
            }
            let nonces: [u64; ABREAST] = std::array::from_fn(|at| start_nonce.wrapping_add(offset + at as u64));
            let tried = (attempts - offset).min(ABREAST as u64) as usize;
            for (work, nonce) in cache.compute(seal_hash, nonces).iter().zip(nonces).take(tried) {
                if work.reaches(difficulty) {
                    let _ = found.set((nonce, work.mix));
                    return;
                }
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads.min(MAX_THREADS) {
            scope.spawn(seek);
        }
        seek();
    });
    Ok(found.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloy_consensus::Header;
    use alloy_primitives::b256;
    use alloy_rlp::Decodable;

    /// Blocks 1 and 32 of a public test chain: number, difficulty, seal hash, nonce, mix hash.
    const SEALED: [(u64, u64, B256, u64, B256); 2] = [
        (
            1,
            131_072,
            b256!("a442cf8fb98efd44028cd29217035eaa7cd02ddd3d04ac551212149e8d037d10"),
            0xbd2b1f0ebba7b989,
            b256!("552dd5ae3ccb7a278c6cedda27e48963101be56526a8ee8d70e8227f2c08edf0"),
        ),
        (
            32,
            133_056,
            b256!("45975a6ead18980436af2f6cad1285d62e8e67733eec4bb8c79c531f6b91c2df"),
            0xdb063000b00e8026,
            b256!("4edd77bfff565659bb0ae09421918e4def65d938a900eb94230eb01f5ce80c99"),
        ),
    ];

    #[test]
    fn sizes_follow_the_published_tables() {
        let sizes = |epoch| {
            (
                size(CACHE_BYTES_START, CACHE_BYTES_GROWTH, ROW_BYTES, epoch),
                size(DATASET_BYTES_START, DATASET_BYTES_GROWTH, PAGE_BYTES, epoch),
            )
        };
        assert_eq!(sizes(0), (16_776_896, 1_073_739_904));
        assert_eq!(sizes(1), (16_907_456, 1_082_130_304));
        assert_eq!(sizes(2), (17_039_296, 1_090_514_816));
        assert_eq!(sizes(2047), (285_081_536, 18_245_220_736));
    }

    #[test]
    fn the_seed_is_zero_hashed_once_per_epoch() {
        assert_eq!(seed(0).unwrap(), B256::ZERO);
        assert_eq!(seed(1).unwrap(), b256!("290decd9548b62a8d60345a988386fc84ba6bc95484008f6362f93160ef3e563"));
        assert_eq!(seed(2).unwrap(), keccak256(seed(1).unwrap()));
        assert!(seed(EPOCHS).is_err());
    }

    #[test]
    fn the_work_of_known_blocks_is_found_again() {
        for (number, difficulty, seal_hash, nonce, mix) in SEALED {
            let work = compute(&seal_hash, nonce, number).unwrap();
            assert_eq!(work.mix, mix);
            assert!(work.reaches(U256::from(difficulty)));
            assert!(!compute(&seal_hash, nonce + 1, number).unwrap().reaches(U256::from(difficulty)));
        }
    }

    #[test]
    fn nonces_side_by_side_give_what_each_gives_alone() {
        let cache = cache(0).unwrap();
        let seal_hash = SEALED[0].2;
        let alone = [1, 2, 3].map(|nonce| cache.works(&seal_hash, [nonce])[0]);
        assert_eq!(cache.compute(&seal_hash, [1, 2, 3]), alone);
    }

    #[test]
    fn a_search_finds_what_computing_confirms_and_gives_up_in_time() {
        let (number, difficulty, seal_hash, nonce, mix) = SEALED[0];
        let found = search(&seal_hash, number, U256::from(difficulty), nonce - 6, 9, 2).unwrap();
        assert_eq!(found, Some((nonce, mix)));
        assert_eq!(search(&seal_hash, number, U256::from(difficulty), nonce - 6, 6, 2).unwrap(), None);
        let (easy, mix) = search(&seal_hash, number, U256::from(3), u64::MAX - 1, 1000, 1).unwrap().unwrap();
        assert_eq!(compute(&seal_hash, easy, number).unwrap().mix, mix);
        assert_eq!(search(&seal_hash, number, U256::from(3), 0, 0, 2).unwrap(), None);
    }

    #[test]
    fn targets_are_the_exact_quotient() {
        let highest = Work { mix: B256::ZERO, result: B256::repeat_byte(0xff) };
        assert!(highest.reaches(U256::ONE));
        assert!(!highest.reaches(U256::from(2)));
        assert!(!highest.reaches(U256::ZERO));
        assert_eq!(target(U256::from(2)), U256::ONE << 255);
        assert_eq!(target(U256::from(3)), U256::MAX / U256::from(3));
        let half = Work { mix: B256::ZERO, result: B256::from(U256::ONE << 255_usize) };
        assert!(half.reaches(U256::from(2)));
        assert!(!half.reaches(U256::from(3)));
    }

    #[test]
    fn a_block_beyond_the_last_epoch_is_refused() {
        assert!(compute(&B256::ZERO, 0, EPOCHS * EPOCH_LENGTH).is_err());
        assert!(compute(&B256::ZERO, 0, u64::MAX).is_err());
    }

    #[test]
    fn every_block_of_the_public_chain_has_its_work() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/fixtures/original/chain/test.blocks");
        let Ok(blocks) = std::fs::read(path) else {
            eprintln!("skipped: {path} is not there");
            return;
        };
        let mut rest = &blocks[..];
        let mut checked = 0;
        while !rest.is_empty() {
            let mut block = alloy_rlp::Header::decode_bytes(&mut rest, true).unwrap();
            let header = Header::decode(&mut block).unwrap();
            if header.number > 0 {
                let work = compute(&seal_hash(&header), header.nonce.into(), header.number).unwrap();
                assert_eq!(work.mix, header.mix_hash, "block {}", header.number);
                assert!(work.reaches(header.difficulty), "block {}", header.number);
                checked += 1;
            }
        }
        assert_eq!(checked, 32);
    }

    /// Return the hash of the header without its last two items: the mix hash (33 bytes of RLP) and the nonce (9
    /// bytes).
    fn seal_hash(header: &Header) -> B256 {
        let encoded = alloy_rlp::encode(header);
        let mut payload = alloy_rlp::Header::decode_bytes(&mut &encoded[..], true).unwrap();
        payload = &payload[..payload.len() - 42];
        let mut out = Vec::new();
        alloy_rlp::Header { list: true, payload_length: payload.len() }.encode(&mut out);
        out.extend_from_slice(payload);
        keccak256(out)
    }
}
