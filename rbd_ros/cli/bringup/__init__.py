"""Commands of `rbd` that write the files of a bringup."""
