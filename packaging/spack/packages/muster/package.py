# SPDX-License-Identifier: Apache-2.0
# Muster in Spack: spack repo add packaging/spack, then, from a checkout,
#	spack dev-build muster@0.1.0
from spack.package import *


class Muster(AutotoolsPackage):
    """Training of neural networks on MPI clusters: a trainer in C with parameter servers, and tools for data
    sets, launching and benchmarks."""

    license("Apache-2.0")

    version("0.1.0")

    variant("onednn", default=True, description="Fast computation on CPUs; without it there is a slow reference only")
    variant("hdf5", default=True, description="Checkpoints, and data files in HDF5")
    variant("images", default=True, description="JPEG and PNG images, and tar files of them")
    variant("bench", default=True, description="Sweeps of benchmarks, mubench run and report")
    variant("tensorboard", default=True, description="Event files of TensorBoard")
    variant("cuda", default=False, description="GPUs of NVIDIA, with cuDNN and NCCL")

    depends_on("c", type="build")
    depends_on("autoconf", type="build")
    depends_on("automake", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("mpi@3:")
    depends_on("zlib-api")
    depends_on("onednn@2.6:2.7,3:", when="+onednn")
    depends_on("hdf5+mpi", when="+hdf5")
    depends_on("libjpeg-turbo", when="+images")
    depends_on("libpng", when="+images")
    depends_on("libarchive", when="+images")
    depends_on("jansson", when="+bench")
    depends_on("protobuf-c", when="+tensorboard")
    depends_on("cuda@12:", when="+cuda")
    depends_on("cudnn@9:", when="+cuda")
    depends_on("nccl@2:", when="+cuda")

    def autoreconf(self, spec, prefix):
        Executable("./bootstrap")()

    def configure_args(self):
        args = ["CC={0}".format(self.spec["mpi"].mpicc)]
        for option, package, variant in (
            ("onednn", "onednn", "onednn"),
            ("hdf5", "hdf5", "hdf5"),
            ("jpeg", "libjpeg-turbo", "images"),
            ("png", "libpng", "images"),
            ("archive", "libarchive", "images"),
            ("jansson", "jansson", "bench"),
            ("protobuf", "protobuf-c", "tensorboard"),
            ("cuda", "cuda", "cuda"),
            ("cudnn", "cudnn", "cuda"),
            ("nccl", "nccl", "cuda"),
        ):
            if self.spec.satisfies("+" + variant):
                args.append("--with-{0}={1}".format(option, self.spec[package].prefix))
            else:
                args.append("--without-{0}".format(option))
        return args

    def installcheck(self):
        make("installcheck")
