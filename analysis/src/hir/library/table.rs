//! The rows: functions by their names, `{a,b}c` for `ac` and `bc`. A row's attributes hold for every name in it: a function that writes
//! through a pointer, asks which thread it is in, or needs other threads has a row of its own.
//!
//! `cargo test -p gridfuse-tests --test library` compares the rows with the headers of CUDA, and names what is missing.

use crate::hir::library::Namespace::{Anywhere, Global, GroupMaker, Groups, Member, Runtime, Standard};
use crate::hir::library::{Args, Does, Library, Memory, Namespace, Outcome, Scope, Together};
use crate::hir::stream_ordered::Operation;

/// Functions that do the same.
pub(super) struct Row {
    pub(super) namespace: Namespace,
    pub(super) names: &'static str,
    pub(super) library: Library,
}

/// The result depends on the arguments alone, and nothing else happens.
pub(super) const PURE: Library = Library {
    result: Outcome::Arguments,
    memory: Memory::Untouched,
    together: Together::Alone,
    does: Does::NOTHING,
    stream: None,
};

/// No result.
const QUIET: Library = Library {
    result: Outcome::Nothing,
    ..PURE
};

/// A result of which nothing is known.
const VARYING: Library = Library {
    result: Outcome::Varying,
    ..PURE
};

/// A result that depends on who asks, and when.
const AROUND: Library = VARYING.does(Does::LOOKS_AROUND);

const ATOMIC: Library = VARYING.memory(Memory::Atomic(Scope::Device));

/// One value for the threads of a mask.
const VOTE: Library = Library {
    result: Outcome::Vote,
    together: Together::Warp,
    ..PURE
};

const WARP: Library = Library {
    result: Outcome::Varying,
    together: Together::Warp,
    does: Does::LOOKS_AROUND,
    ..PURE
};

const OTHER_LANE: Library = Library {
    result: Outcome::OtherLane,
    ..VOTE
};

const BLOCK_BARRIER: Library = Library {
    result: Outcome::Nothing,
    together: Together::Block,
    does: Does::BARRIER,
    ..PURE
};

const BLOCK_VOTE: Library = Library {
    result: Outcome::Block,
    ..BLOCK_BARRIER
};

const GROUP_BARRIER: Library = Library {
    together: Together::Group,
    ..BLOCK_BARRIER
};

/// Writes a result through its first argument, and says whether that went well.
const REPORTS: Library = VARYING.writing(&[0]);

const HANDLE: Library = VARYING.memory(Memory::Handle { writes: false });

const fn stream(operation: Operation, stream: usize) -> Library {
    let memory = match operation {
        Operation::Event => Memory::Untouched,
        Operation::Set => through(Args::of(&[0]), Args::NONE),
        Operation::Copy => through(Args::of(&[0]), Args::of(&[1])),
        Operation::CopyBox => Memory::Handle { writes: true },
    };
    let mut row = VARYING.memory(memory);
    row.stream = Some((operation, stream));
    row
}

const fn through(writes: Args, reads: Args) -> Memory {
    Memory::Through {
        writes,
        reads,
        whole: true,
    }
}

impl Library {
    const fn memory(mut self, memory: Memory) -> Library {
        self.memory = memory;
        self
    }

    const fn does(mut self, does: Does) -> Library {
        self.does = self.does.and(does);
        self
    }

    /// It writes one value each through these arguments.
    const fn writing(self, places: &[u8]) -> Library {
        self.memory(Memory::Through {
            writes: Args::of(places),
            reads: Args::NONE,
            whole: false,
        })
    }

    /// It reads what these arguments point at.
    const fn reading(self, places: &[u8]) -> Library {
        self.memory(through(Args::NONE, Args::of(places)))
    }
}

const fn row(namespace: Namespace, names: &'static str, library: Library) -> Row {
    Row {
        namespace,
        names,
        library,
    }
}

/// The table.
pub(super) const ROWS: &[Row] = &[
    // C's and C++'s mathematics.
    row(
        Anywhere,
        "{acos,acosh,asin,asinh,atan,atan2,atanh,cbrt,ceil,copysign,cos,cosh,erf,erfc,exp,exp2,expm1,fabs,fdim,floor,fma,fmax,fmin,fmod,hypot}{,f}
         {ilogb,ldexp,lgamma,llrint,llround,log,log10,log1p,log2,logb,lrint,lround,nearbyint,nextafter,pow,remainder,rint,round,scalbln,scalbn}{,f}
         {sin,sinh,sqrt,tan,tanh,tgamma,trunc}{,f} {,l,ll}abs isnan isinf isfinite isnormal signbit min max",
        PURE,
    ),
    row(Anywhere, "{frexp,modf}{,f}", PURE.writing(&[1])),
    row(Anywhere, "remquo{,f}", PURE.writing(&[2])),
    row(Anywhere, "nan{,f}", VARYING.reading(&[0])),
    row(Global, "{sincos,sincospi}{,f} __sincosf", QUIET.writing(&[1, 2])),
    // How many numbers they read, their first argument says.
    row(Global, "{norm,rnorm}{,f}", VARYING.reading(&[1])),
    // CUDA's.
    row(
        Global,
        "{cospi,sinpi,cyl_bessel_i0,cyl_bessel_i1,erfcinv,erfcx,erfinv,exp10,j0,j1,jn,norm3d,norm4d,normcdf,normcdfinv,rcbrt,rhypot}{,f}
         {rnorm3d,rnorm4d,rsqrt,y0,y1,yn,fdivide}{,f} {u,ll,ull}{min,max} saturate __{isinf,isnan,finite,signbit}{,f,l}
         __{exp10,exp,log10,log2,log,sin,cos,tan,tanh,pow,saturate}f __fdividef",
        PURE,
    ),
    // Integers.
    row(
        Global,
        "__{brev,clz,ffs,popc}{,ll} __fns __byte_perm __{,u}{mul24,mulhi,mul64hi,sad} __{,u}{hadd,rhadd} __funnelshift_{l,r}{,c} __dp4a
         __dp2a_{lo,hi} __nv_bswap{16,32,64} __builtin_expect",
        PURE,
    ),
    // A rounding of one's own.
    row(
        Global,
        "__{f,d}{add,sub,mul,div,rcp,sqrt}_r{n,z,u,d} __fma{,f,f_ieee}_r{n,z,u,d} __frsqrt_rn",
        PURE,
    ),
    // Conversions.
    row(
        Global,
        "__{float,double}2{int,uint,ll,ull}_r{n,z,u,d} __{int,uint,ll,ull}2float_r{n,z,u,d} __{int,uint}2double_rn
         __{ll,ull}2double_r{n,z,u,d} __double2float_r{n,z,u,d} __double2{hi,lo}int __hiloint2double __float_as_{int,uint}
         __{int,uint}_as_float __double_as_longlong __longlong_as_double",
        PURE,
    ),
    row(
        Global,
        "make_{char,uchar,short,ushort,int,uint,long,ulong,longlong,ulonglong,float,double}{1,2,3,4}
         make_{long,ulong,longlong,ulonglong,double}4_{16,32}a make_{half,bfloat16}2",
        PURE,
    ),
    // Several numbers in a word.
    row(
        Global,
        "__v{abs,neg}{,ss}{2,4} __vabsdiff{s,u}{2,4} __v{add,sub}{,ss,us}{2,4} __vavg{s,u}{2,4} __v{max,min,sad}{s,u}{2,4} __vhaddu{2,4}
         __v{cmp,set}{eq,ne,ges,geu,gts,gtu,les,leu,lts,ltu}{2,4}
         __vi{addmax,addmin,max3,min3}_{s16x2,s16x2_relu,s32,s32_relu,u16x2,u32} __vi{max,min}_{s16x2,s32}_relu",
        PURE,
    ),
    // Which of the two it was comes out through pointers.
    row(Global, "__vib{max,min}_{s,u}32", PURE.writing(&[2])),
    row(Global, "__vib{max,min}_{s,u}16x2", PURE.writing(&[2, 3])),
    // Half precision.
    row(
        Global,
        "__h{add,sub,mul}{,2}_{rn,sat} __h{sub,mul} __h{add,sub,mul}2 __h{,2}div __hfma{,2}{,_relu,_sat} __hcmadd __h{abs,neg}{,2}
         __h{eq,ne,ge,gt,le,lt}{,u}{,2,2_mask} __hb{eq,ne,ge,gt,le,lt}{,u}2 __h{max,min}{,2}{,_nan} __hisnan{,2} __hisinf
         h{,2}{ceil,cos,exp,exp10,exp2,floor,log,log10,log2,rcp,rint,rsqrt,sin,sqrt,tanh,tanh_approx,trunc}",
        PURE,
    ),
    row(
        Global,
        "__{half,bfloat16}2{short,int,ll,ushort,uint,ull}_r{n,z,u,d} __{half,bfloat16}2{char,uchar}_rz __{half,bfloat16}2float
         __{short,int,ll,ushort,uint,ull}2{half,bfloat16}_r{n,z,u,d} __{float,double}2{half,bfloat16} __float2{half,bfloat16}_r{n,z,u,d}
         __float{,2,s}2{half2,bfloat162}_rn __{half,bfloat16}22float2 __half2half2 __bfloat162bfloat162
         __{low,high}2{float,half,half2,bfloat16,bfloat162} __{halves,lows,highs}2{half2,bfloat162} __lowhigh2highlow
         __{half,bfloat16}_as_{short,ushort} __{short,ushort}_as_{half,bfloat16}",
        PURE,
    ),
    row(
        Global,
        "__nv_cvt_{bfloat16raw,halfraw,float,double}_to_fp{4,6,8} __nv_cvt_{bfloat16raw2,halfraw2,float2,double2}_to_fp{4,6,8}x2
         __nv_cvt_fp{4,6,8}_to_halfraw __nv_cvt_fp{4,6,8}x2_to_halfraw2 __nv_cvt_{bfloat16raw,float,double}_to_e8m0
         __nv_cvt_{bfloat162raw,float2,double2}_to_e8m0x2 __nv_cvt_e8m0_to_bf16raw __nv_cvt_e8m0x2_to_bf162raw",
        PURE,
    ),
    // What kind of memory an address is of.
    row(
        Global,
        "__is{Global,Shared,Constant,Local,GridConstant} __cvta_generic_to_{global,shared,constant,local,grid_constant}
         __cvta_{global,shared,constant,local,grid_constant}_to_generic",
        PURE.does(Does::ASKS_FOR_MEMORY),
    ),
    // Loads and stores by a cache of one's own.
    row(Global, "__ldg", Library { result: Outcome::ReadOnly, ..VARYING.memory(Memory::ReadOnly) }),
    row(Global, "__ld{cg,ca,cs,lu}", VARYING.memory(Memory::Loads { volatile: false })),
    row(Global, "__ldcv", VARYING.memory(Memory::Loads { volatile: true })),
    row(Global, "__st{wb,cg,cs,wt}", QUIET.memory(Memory::Stores)),
    row(
        Global,
        "tex1Dfetch tex{1D,2D,3D}{,Lod,Grad} tex{1D,2D}Layered{,Lod,Grad} texCubemap{,Lod,Grad} texCubemapLayered{,Lod,Grad} tex2Dgather
         surf{1D,2D,3D,1DLayered,2DLayered,Cubemap,CubemapLayered}read",
        HANDLE,
    ),
    row(
        Global,
        "surf{1D,2D,3D,1DLayered,2DLayered,Cubemap,CubemapLayered}write",
        QUIET.memory(Memory::Handle { writes: true }),
    ),
    // Atomic operations.
    row(Global, "atomic{Add,Sub,Exch,Min,Max,Inc,Dec,CAS,And,Or,Xor}", ATOMIC),
    row(
        Global,
        "atomic{Add,Sub,Exch,Min,Max,Inc,Dec,CAS,And,Or,Xor}_block",
        ATOMIC.memory(Memory::Atomic(Scope::Block)),
    ),
    row(
        Global,
        "atomic{Add,Sub,Exch,Min,Max,Inc,Dec,CAS,And,Or,Xor}_system",
        ATOMIC.memory(Memory::Atomic(Scope::System)),
    ),
    row(Global, "__threadfence{,_block,_system,_cluster}", QUIET.does(Does::FENCE)),
    // Threads of a warp.
    row(Global, "__{any,all,ballot,uni}_sync __reduce_{add,min,max,and,or,xor}_sync", VOTE),
    row(Global, "__match_any_sync __{any,all,ballot} __shfl{,_up,_down,_xor}", WARP),
    row(Global, "__match_all_sync", WARP.writing(&[2])),
    row(Global, "__activemask", Library { result: Outcome::Active, ..WARP }),
    row(Global, "__shfl_sync", Library { result: Outcome::Lane, ..VOTE }),
    row(Global, "__shfl_{up,down,xor}_sync", OTHER_LANE),
    row(Global, "__syncwarp", Library { together: Together::Warp, ..BLOCK_BARRIER }),
    // Threads of a block, and beyond.
    row(Global, "__syncthreads", BLOCK_BARRIER),
    row(Global, "__syncthreads_{or,and,count}", BLOCK_VOTE),
    row(
        Global,
        "__barrier_sync __barrier_sync_count __cluster_barrier_{arrive,arrive_relaxed,wait}",
        GROUP_BARRIER,
    ),
    row(
        Global,
        "__mbarrier_{arrive,arrive_and_drop,init,inval,test_wait,test_wait_parity,try_wait,try_wait_parity}",
        Library { result: Outcome::Varying, ..GROUP_BARRIER.memory(through(Args::of(&[0]), Args::of(&[0]))) },
    ),
    row(Global, "__mbarrier_{maximum_count,token_pending_count}", PURE),
    // What is copied is there when it has been waited for.
    row(Global, "__pipeline_memcpy_async", QUIET.memory(through(Args::of(&[0]), Args::of(&[1]))).does(Does::ASKS_FOR_MEMORY)),
    row(Global, "__pipeline_commit __pipeline_wait_prior", QUIET),
    row(Global, "__pipeline_arrive_on", Library { together: Together::Group, ..QUIET.memory(through(Args::of(&[0]), Args::of(&[0]))) }),
    // Memory as C has it.
    row(Anywhere, "memcpy memmove", VARYING.memory(through(Args::of(&[0]), Args::of(&[1])))),
    row(Anywhere, "memset", VARYING.memory(through(Args::of(&[0]), Args::NONE))),
    row(Anywhere, "memcmp strcmp", VARYING.reading(&[0, 1])),
    row(Anywhere, "memchr strlen", VARYING.reading(&[0])),
    row(Anywhere, "malloc", AROUND.does(Does::ALLOCATES)),
    row(Anywhere, "free", QUIET.memory(Memory::Frees)),
    row(Anywhere, "printf puts putchar", VARYING.does(Does::PRINTS)),
    row(Anywhere, "assert", AROUND.does(Does::TRAPS)),
    row(Anywhere, "abort exit", AROUND.does(Does::TRAPS)),
    row(Global, "__trap __brkpt", AROUND.does(Does::TRAPS)),
    row(Anywhere, "clock", AROUND),
    row(Global, "clock64 __clock __clock64 __globaltimer __pm{0,1,2,3} __nanosleep __prof_trigger", AROUND),
    row(Anywhere, "rand", AROUND.does(Does::HOST)),
    row(Anywhere, "is{alnum,alpha,digit,lower,punct,space,upper,xdigit} to{lower,upper}", PURE),
    // C++'s.
    row(
        Standard,
        "move forward clamp bit_cast popcount count{l,r}_{zero,one} has_single_bit bit_{ceil,floor,width} rot{l,r} byteswap midpoint lerp gcd
         lcm to_underlying",
        PURE,
    ),
    row(Standard, "swap exchange", VARYING.memory(Memory::References)),
    // The device runtime.
    row(Global, "cudaGetError{String,Name}", PURE),
    row(Global, "cuda{Get,PeekAt}LastError", VARYING.does(Does::READS_ERROR)),
    row(Global, "cudaDeviceSynchronize cudaThreadSynchronize", VARYING.does(Does::WAITS_FOR_CHILDREN)),
    row(
        Global,
        "cudaStreamSynchronize cudaEventSynchronize",
        VARYING.does(Does::WAITS_FOR_STREAM.and(Does::HOST)),
    ),
    row(
        Global,
        "cudaStreamCreateWithFlags cudaEventCreateWithFlags cudaGetDevice{,Count} cudaRuntimeGetVersion cudaFuncGetAttributes
         cudaDeviceGet{Attribute,Limit,CacheConfig,SharedMemConfig} cudaOccupancyMaxActiveBlocksPerMultiprocessor{,WithFlags}",
        REPORTS,
    ),
    row(Global, "cuda{Stream,Event}Create", REPORTS.does(Does::HOST)),
    row(Global, "cuda{Stream,Event}Destroy", VARYING),
    row(Global, "cudaMalloc", REPORTS.does(Does::ALLOCATES)),
    row(Global, "cudaFree", VARYING.memory(Memory::Frees)),
    row(
        Global,
        "cudaGetParameterBuffer{,V2} cudaLaunchDevice{,V2}{,_ptsz} cudaGraphLaunch",
        VARYING.does(Does::LAUNCHES),
    ),
    row(Global, "cudaMemset", VARYING.memory(through(Args::of(&[0]), Args::NONE)).does(Does::HOST)),
    row(Global, "cudaMemcpy", VARYING.memory(through(Args::of(&[0]), Args::of(&[1]))).does(Does::HOST)),
    row(Global, "cudaMemsetAsync{,_ptsz}", stream(Operation::Set, 3)),
    row(Global, "cudaMemset2DAsync{,_ptsz}", stream(Operation::Set, 5)),
    row(Global, "cudaMemset3DAsync{,_ptsz}", stream(Operation::CopyBox, 3)),
    row(Global, "cudaMemcpyAsync{,_ptsz}", stream(Operation::Copy, 4)),
    row(
        Global,
        "cudaMemcpy2DAsync{,_ptsz}",
        stream(Operation::Copy, 7).memory(through(Args::of(&[0]), Args::of(&[2]))),
    ),
    row(Global, "cudaMemcpy3DAsync{,_ptsz}", stream(Operation::CopyBox, 1)),
    row(Global, "cudaEventRecord{,WithFlags}{,_ptsz}", stream(Operation::Event, 1)),
    row(Global, "cudaStreamWaitEvent{,_ptsz}", stream(Operation::Event, 0)),
    // Random numbers: each draw changes the state.
    row(
        Global,
        "curand{,4} curand_uniform{,2,4}{,_double} curand_{normal,log_normal}{,2,4}{,_double}",
        VARYING.memory(through(Args::of(&[0]), Args::of(&[0]))),
    ),
    row(Global, "curand_poisson{,4} curand_discrete{,4}", VARYING.memory(through(Args::of(&[0]), Args::of(&[0])))),
    // The state comes last.
    row(
        Global,
        "curand_init skipahead{,_sequence,_subsequence}",
        QUIET.memory(through(Args::LAST, Args::of(&[0, 1]))),
    ),
    // The runtime header's, which work on their arguments.
    row(Runtime, "below_threshold coarsened coarsened_to view_of", PURE),
    // Groups of threads: which they are depends on who asks.
    row(GroupMaker, "this_{thread_block,grid,thread,cluster} tiled_partition", AROUND),
    row(GroupMaker, "coalesced_threads", WARP),
    row(Groups, "sync", GROUP_BARRIER),
    row(Member, "sync barrier_arrive barrier_wait arrive_and_wait", GROUP_BARRIER),
    row(Member, "any all ballot shfl shfl_up shfl_down shfl_xor match_any", WARP),
    row(Member, "match_all", WARP.writing(&[1])),
    row(
        Member,
        "thread_rank size num_threads meta_group_{rank,size} group_index thread_index group_dim dim_threads is_valid
         block_{rank,index} num_blocks dim_blocks cluster_{rank,index} num_clusters dim_clusters",
        AROUND,
    ),
];

/// Functions of CUDA's headers of which the table says nothing, and why: they may do anything.
pub(super) const LEFT_OUT: &[(&str, &str)] = &[
    (
        "double2{int,ll,uint,ull} float2double {int,uint,ll,ull}2double d{add,sub,mul} syncthreads_{and,count,or}
         all any ballot",
        "old names without documentation, which programs have for functions of their own",
    ),
    (
        "cudaOccupancyMaxPotentialBlockSize{,VariableSMem}{,WithFlags} cudaGetCurrentGraphExec cudaGraphSetConditional
         cudaGraphKernelNode{SetEnabled,SetGridDim,SetParam,UpdatesApply} cudaGridDependencySynchronize cudaTriggerProgrammaticLaunchCompletion
         cudaCG{GetIntrinsicHandle,GetRank,GetSize,Synchronize,SynchronizeGrid}",
        "they work on other grids, or on graphs",
    ),
    (
        "__cluster{Dim,DimIsSpecified,GridDimInClusters,Idx,RelativeBlockIdx,RelativeBlockRank,SizeInBlocks}
         __cluster_map_shared_{multicast,rank} __cluster_query_shared_rank __is{Cluster,Cta}Shared",
        "they tell and reach the blocks of a cluster",
    ),
    (
        "reduce reduce_{store,update}_async {in,ex}clusive_scan{,_update}",
        "cooperative groups' that call what they are given",
    ),
    (
        "memcpy_async wait wait_prior {binary,labeled}_partition {map,query}_shared_rank",
        "cooperative groups' that make and reach other groups, or copy for one",
    ),
    ("{bmma,mma,load_matrix,store_matrix}_sync fill_fragment", "matrices of a warp, which they change by reference"),
];
