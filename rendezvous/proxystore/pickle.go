package proxystore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// Torch's agents keep the state of their rendezvous as a pickle: a program for a stack machine that builds Python
// objects. unpickle runs the part of that machine which such a state needs, builds plain values in place of objects,
// and never calls anything. pickle writes those values again, with every class and field that was read.

// The values of a pickle that are not nil, bool, int64, string or []byte. They are pointers, because a pickle may refer
// to one of them twice.
type (
	pyTuple  struct{ items []any }
	pySet    struct{ items []any }
	pyDict   struct{ keys, values []any }
	pyGlobal struct{ module, name string }
	// pyObject is an instance of a class, or the result of a function.
	pyObject struct {
		of, args any
		call     bool // of is a function that is called; otherwise it is the class
		state    any  // its fields, or nil
	}
)

// The operations of protocols 4 and 5 that occur in a state.
const (
	opMark         = '('
	opStop         = '.'
	opInt4         = 'J'
	opInt1         = 'K'
	opInt2         = 'M'
	opNone         = 'N'
	opReduce       = 'R'
	opShortBytes   = 'C'
	opBuild        = 'b'
	opGet          = 'h'
	opLongGet      = 'j'
	opSetItem      = 's'
	opTuple        = 't'
	opSetItems     = 'u'
	opEmptyTuple   = ')'
	opEmptyDict    = '}'
	opProto        = 0x80
	opNewObject    = 0x81
	opTuple1       = 0x85
	opTuple2       = 0x86
	opTuple3       = 0x87
	opTrue         = 0x88
	opFalse        = 0x89
	opLong         = 0x8a
	opShortText    = 0x8c
	opText         = 'X'
	opEmptySet     = 0x8f
	opAddItems     = 0x90
	opGlobal       = 0x93
	opMemoize      = 0x94
	opFrame        = 0x95
	mostPickled    = 1 << 20
	mostNested     = 100
	protocol       = 4
	longestShort   = 255
	frameLength    = 8
	longestLongInt = 8
)

var errPickle = errors.New("the pickle is incomplete or malformed")

// machine is the stack machine.
type machine struct {
	rest  []byte
	stack []any
	marks []int
	memo  []any
}

// unpickle returns the value that a pickle builds. It refuses unknown operations, and values that pickle cannot write,
// such as deeply nested ones.
func unpickle(text []byte) (v any, err error) {
	if len(text) > mostPickled {
		return nil, fmt.Errorf("the pickle has %d bytes, more than %d", len(text), mostPickled)
	}
	defer func() { // a malformed pickle reads beyond the end of a slice
		if recover() != nil {
			v, err = nil, errPickle
		}
	}()
	m := machine{rest: text}
	for {
		switch op := m.take(1)[0]; op {
		case opStop:
			v := m.pop()
			if _, err := pickle(v); err != nil {
				return nil, err
			}
			return v, nil
		default:
			if err := m.step(op); err != nil {
				return nil, err
			}
		}
	}
}

func (m *machine) take(n int) []byte {
	part := m.rest[:n:n]
	m.rest = m.rest[n:]
	return part
}

func (m *machine) push(v any) { m.stack = append(m.stack, v) }

func (m *machine) pop() any {
	v := m.stack[len(m.stack)-1]
	m.stack = m.stack[:len(m.stack)-1]
	return v
}

func (m *machine) top() any { return m.stack[len(m.stack)-1] }

// sinceMark pops what was pushed since the last mark.
func (m *machine) sinceMark() []any {
	at := m.marks[len(m.marks)-1]
	m.marks = m.marks[:len(m.marks)-1]
	return m.last(len(m.stack) - at)
}

// last pops n values.
func (m *machine) last(n int) []any {
	at := len(m.stack) - n
	items := append([]any(nil), m.stack[at:]...)
	m.stack = m.stack[:at]
	return items
}

func (m *machine) step(op byte) error {
	switch op {
	case opProto:
		m.take(1)
	case opFrame:
		m.take(frameLength)
	case opMark:
		m.marks = append(m.marks, len(m.stack))
	case opMemoize:
		m.memo = append(m.memo, m.top())
	case opGet:
		m.push(m.memo[m.take(1)[0]])
	case opLongGet:
		m.push(m.memo[binary.LittleEndian.Uint32(m.take(4))])
	case opNone:
		m.push(nil)
	case opTrue, opFalse:
		m.push(op == opTrue)
	case opInt1, opInt2, opInt4, opLong:
		return m.integer(op)
	case opShortText:
		m.push(string(m.take(int(m.take(1)[0]))))
	case opText:
		m.push(string(m.take(int(binary.LittleEndian.Uint32(m.take(4))))))
	case opShortBytes:
		m.push(m.take(int(m.take(1)[0])))
	default:
		return m.compose(op)
	}
	return nil
}

func (m *machine) integer(op byte) error {
	switch op {
	case opInt1:
		m.push(int64(m.take(1)[0]))
	case opInt2:
		m.push(int64(binary.LittleEndian.Uint16(m.take(2))))
	case opInt4:
		m.push(int64(int32(binary.LittleEndian.Uint32(m.take(4)))))
	case opLong:
		n := int(m.take(1)[0])
		if n == 0 || n > longestLongInt {
			return fmt.Errorf("the pickle has an integer of %d bytes", n)
		}
		var full [longestLongInt]byte
		copy(full[:], m.take(n))
		if full[n-1]&0x80 != 0 { // negative
			for i := n; i < len(full); i++ {
				full[i] = 0xff
			}
		}
		m.push(int64(binary.LittleEndian.Uint64(full[:])))
	}
	return nil
}

// compose carries out the operations that build a value from others.
func (m *machine) compose(op byte) error {
	switch op {
	case opEmptyTuple:
		m.push(&pyTuple{})
	case opTuple1, opTuple2, opTuple3:
		m.push(&pyTuple{m.last(int(op) - opTuple1 + 1)})
	case opTuple:
		m.push(&pyTuple{m.sinceMark()})
	case opEmptyDict:
		m.push(&pyDict{})
	case opEmptySet:
		m.push(&pySet{})
	case opSetItem:
		m.setItems(m.last(2))
	case opSetItems:
		m.setItems(m.sinceMark())
	case opAddItems:
		items := m.sinceMark()
		s := m.top().(*pySet)
		s.items = append(s.items, items...)
	case opGlobal:
		names := m.last(2)
		m.push(&pyGlobal{names[0].(string), names[1].(string)})
	case opNewObject, opReduce:
		two := m.last(2)
		m.push(&pyObject{of: two[0], args: two[1], call: op == opReduce})
	case opBuild:
		state := m.pop()
		m.top().(*pyObject).state = state
	default:
		return fmt.Errorf("the pickle has the unknown operation %#x", op)
	}
	return nil
}

func (m *machine) setItems(items []any) {
	d := m.top().(*pyDict)
	for i := 0; i < len(items); i += 2 {
		d.keys, d.values = append(d.keys, items[i]), append(d.values, items[i+1])
	}
}

// pickler writes values. Each value is written once. Further occurrences are references to it.
type pickler struct {
	out   []byte
	memo  map[any]int
	depth int // of the value that is being written
}

// pickle returns the program that builds a value.
func pickle(v any) ([]byte, error) {
	p := pickler{out: []byte{opProto, protocol}, memo: map[any]int{}}
	if err := p.write(v); err != nil {
		return nil, err
	}
	return append(p.out, opStop), nil
}

// write is recursive, and the stack must not grow with the size of what another client has written.
func (p *pickler) write(v any) error {
	if p.depth++; p.depth > mostNested {
		return fmt.Errorf("the pickle has values that are nested more than %d deep", mostNested)
	}
	defer func() { p.depth-- }()
	switch v := v.(type) {
	case nil:
		p.out = append(p.out, opNone)
	case bool:
		p.out = append(p.out, map[bool]byte{true: opTrue, false: opFalse}[v])
	case int64:
		p.integer(v)
	case []byte:
		if len(v) > longestShort {
			return fmt.Errorf("the pickle has %d bytes in one value, more than %d", len(v), longestShort)
		}
		p.out = append(append(p.out, opShortBytes, byte(len(v))), v...)
	default: // values that may occur again
		if at, ok := p.memo[v]; ok {
			p.out = binary.LittleEndian.AppendUint32(append(p.out, opLongGet), uint32(at))
			return nil
		}
		return p.first(v)
	}
	return nil
}

func (p *pickler) integer(v int64) {
	if v >= math.MinInt32 && v <= math.MaxInt32 {
		p.out = binary.LittleEndian.AppendUint32(append(p.out, opInt4), uint32(int32(v)))
		return
	}
	p.out = binary.LittleEndian.AppendUint64(append(p.out, opLong, longestLongInt), uint64(v))
}

// first writes a value that has not occurred before.
func (p *pickler) first(v any) error {
	switch v := v.(type) {
	case string:
		p.out = append(binary.LittleEndian.AppendUint32(append(p.out, opText), uint32(len(v))), v...)
	case *pyGlobal:
		return p.all(v, opGlobal, v.module, v.name)
	case *pyTuple:
		p.out = append(p.out, opMark)
		return p.all(v, opTuple, v.items...)
	case *pyDict:
		p.out = append(p.out, opEmptyDict)
		p.memoize(v)
		return p.items(opSetItems, pairs(v))
	case *pySet:
		p.out = append(p.out, opEmptySet)
		p.memoize(v)
		return p.items(opAddItems, v.items)
	case *pyObject:
		op := byte(opNewObject)
		if v.call {
			op = opReduce
		}
		if err := p.all(v, op, v.of, v.args); err != nil || v.state == nil {
			return err
		}
		if err := p.write(v.state); err != nil {
			return err
		}
		p.out = append(p.out, opBuild)
		return nil
	default:
		return fmt.Errorf("a pickle cannot contain a %T", v)
	}
	p.memoize(v)
	return nil
}

// all writes values, and the operation that builds v from them.
func (p *pickler) all(v any, op byte, values ...any) error {
	for _, value := range values {
		if err := p.write(value); err != nil {
			return err
		}
	}
	p.out = append(p.out, op)
	p.memoize(v)
	return nil
}

// items writes values, and the operation that adds them to the container on the stack.
func (p *pickler) items(op byte, values []any) error {
	if len(values) == 0 {
		return nil
	}
	p.out = append(p.out, opMark)
	for _, value := range values {
		if err := p.write(value); err != nil {
			return err
		}
	}
	p.out = append(p.out, op)
	return nil
}

func (p *pickler) memoize(v any) {
	p.out = append(p.out, opMemoize)
	p.memo[v] = len(p.memo)
}

func pairs(d *pyDict) []any {
	all := make([]any, 0, 2*len(d.keys))
	for i := range d.keys {
		all = append(all, d.keys[i], d.values[i])
	}
	return all
}
