FROM python:3.11-slim-bookworm

ENV PIP_NO_CACHE_DIR=1 PYTHONUNBUFFERED=1

# The libraries first: they change less often than the code, so this layer is mostly reused.
COPY requirements.lock /src/
RUN pip install --require-hashes -r /src/requirements.lock

# .dockerignore lets in the packages and what their build reads, nothing else.
COPY . /src
RUN pip install --no-deps --no-build-isolation /src && rm -rf /src

# A new named volume takes its owner from this folder, so the account without rights may write to it.
RUN useradd --uid 10001 --no-create-home --home-dir /var/lib/inferledger --shell /usr/sbin/nologin inferledger \
    && install --directory --owner inferledger --group inferledger /var/lib/inferledger /var/lib/inferledger/data
USER inferledger
WORKDIR /var/lib/inferledger

ENTRYPOINT ["inferledger"]
CMD ["--help"]
