"""The dialect of Determined 0.25 and what we add to it: routes by noun, and how records are shown."""
