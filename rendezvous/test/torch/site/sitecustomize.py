"""Debian builds torch without libuv, yet TCPStore asks for it unless told otherwise: tell it otherwise.

Upstream's wheels have libuv and need none of this. The store's class is there just before this module of torch is
imported, and nobody has made a store yet.

The agents also log which rank they have in which round of the rendezvous. Torch logs that at level INFO, which no
variable sets for this logger.
"""
import logging
import sys

_rounds = logging.getLogger("torch.distributed.elastic.rendezvous.dynamic_rendezvous")
_rounds.addHandler(logging.StreamHandler())
_rounds.setLevel(logging.INFO)


class _Hook:
    def find_spec(self, name, path=None, target=None):
        if name == "torch.distributed.distributed_c10d":
            store = sys.modules["torch._C._distributed_c10d"].TCPStore
            made = store.__init__
            if "use_libuv" in (made.__doc__ or ""):

                def init(self, *args, **options):
                    options.setdefault("use_libuv", False)
                    made(self, *args, **options)

                store.__init__ = init
        return None


sys.meta_path.insert(0, _Hook())
