package gangcache

import (
	"container/heap"
	"slices"
)

// ranking finds the first of a gang's members in some order without a walk over all of them, which for thousands of
// pods that come and go one by one would be millions of steps. Members that have gone, or stand elsewhere now, are left
// in it until they come first or are too many.
type ranking struct {
	order   func(a, b *Member) int
	current func(*Member) bool // whether a member is still in the ranking
	members []*Member
}

// add enters a member; size is how many the gang has.
func (r *ranking) add(m *Member, size int) {
	if len(r.members) > 4*size+16 {
		r.members = slices.DeleteFunc(r.members, func(m *Member) bool { return !r.current(m) })
		slices.SortFunc(r.members, r.order) // which is a heap as well
		r.members = slices.Compact(r.members)
	}
	heap.Push(r, m)
}

// first is the member that comes first, nil where there is none.
func (r *ranking) first() *Member {
	for len(r.members) > 0 {
		if m := r.members[0]; r.current(m) {
			return m
		}
		heap.Pop(r)
	}
	return nil
}

// Len, Less, Swap, Push and Pop are what package heap asks for.
func (r *ranking) Len() int           { return len(r.members) }
func (r *ranking) Less(i, j int) bool { return r.order(r.members[i], r.members[j]) < 0 }
func (r *ranking) Swap(i, j int)      { r.members[i], r.members[j] = r.members[j], r.members[i] }
func (r *ranking) Push(m any)         { r.members = append(r.members, m.(*Member)) }
func (r *ranking) Pop() any {
	last := len(r.members) - 1
	m := r.members[last]
	r.members[last] = nil
	r.members = r.members[:last]
	return m
}
