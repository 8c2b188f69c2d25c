#pragma once

namespace lynx {
namespace join {

template<
	typename _SizeType,
	typename _DataType,
	_SizeType _THREADS,
	_SizeType _CDP_THREADS,
	_SizeType _CDP_THRESHOLD
>
class Settings {
public:
	typedef _SizeType SizeType;
	typedef _DataType DataType;
	static const SizeType THREADS = _THREADS;
	static const SizeType CDP_THREADS = _CDP_THREADS;
	static const SizeType CDP_THRESHOLD = _CDP_THRESHOLD;
};

template< typename SizeType, typename DataType >
struct JoinData {
	SizeType  inputCountLeft;
	SizeType  inputCountRight;
	DataType *devInputLeft;
	DataType *devInputRight;	//sorted
	SizeType *devLower;
	SizeType *devUpper;
	SizeType *devOffset;
	SizeType *devJoinLeftOutIndices;
	SizeType *devJoinRightOutIndices;
};

}
}
